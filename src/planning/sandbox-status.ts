import { isDeepStrictEqual } from 'node:util'
import type { Pod, Service } from '../api/core.ts'
import type { Sandbox, SandboxStatus } from '../api/kinds.ts'
import type { Condition } from '../api/schema.ts'
import { conditionTypes, labels, sandboxReasons } from '../api/vocabulary.ts'
import { serviceFQDN } from './build-service.ts'
import { findCondition, setCondition, type NextCondition } from './conditions.ts'
import { podIPs, podScheduled, podState } from './pod-state.ts'
import { nameOf, sandboxNameHash } from './sandbox-identity.ts'

/** How things stand with a Sandbox, as the ladder of `planSandbox` found them. */
export type Situation =
  | { readonly kind: 'deleting' }
  /** `isCleared`: Pod and Service are gone. */
  | { readonly kind: 'expired'; readonly isCleared: boolean }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'multiplePods'; readonly names: readonly string[] }
  /** The API server would not take something the Sandbox needs. */
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string }
  /** `missing`: what the Pod's own state does not tell, as sentences. */
  | { readonly kind: 'running'; readonly missing: readonly string[] }

export interface ObservedSandbox {
  readonly sandbox: Sandbox
  readonly situation: Situation
  /** The Pod, Service and Pod UID that count as this Sandbox's own. */
  readonly pod: Pod | undefined
  readonly service: Service | undefined
  readonly podUID: string | undefined
  readonly clusterDomain: string
}

/** The status to publish, complete. `now` is in milliseconds. */
export function sandboxStatus(observed: ObservedSandbox, now: number): SandboxStatus {
  const { sandbox, pod, service, podUID, clusterDomain } = observed
  const addresses = pod && pod.metadata.deletionTimestamp === undefined ? podIPs(pod) : []
  const nodeName = pod?.spec?.nodeName
  const updateRevision = sandbox.metadata.labels?.[labels.setTemplateHash]
  return {
    conditions: conditionsOf(observed, now),
    phase: phaseOf(observed),
    selector: `${labels.sandboxNameHash}=${sandboxNameHash(sandbox)}`,
    ...(addresses.length > 0 && { podIPs: addresses }),
    ...(nodeName !== undefined && { nodeName }),
    ...(podUID !== undefined && { podUID }),
    ...(service && { service: nameOf(service), serviceFQDN: serviceFQDN(service, clusterDomain) }),
    ...(updateRevision !== undefined && { updateRevision }),
  }
}

/** What of the difference between two statuses somebody may be waiting for. */
export type StatusChange = 'none' | 'minor' | 'real'

/**
 * Ready, Finished, Suspended and addresses are real: claims and pools act on them. The rest, and the first words
 * about a Sandbox that is only being set up, can wait for the next real change.
 */
export function statusChange(present: SandboxStatus | undefined, wanted: SandboxStatus): StatusChange {
  if (isDeepStrictEqual(present ?? {}, wanted)) return 'none'
  return isDeepStrictEqual(essentials(present ?? {}), essentials(wanted)) ? 'minor' : 'real'
}

/** The merge patch from the present status to `wanted`. It names the version it was computed from: 409 if that is old. */
export function statusPatch(sandbox: Sandbox, wanted: SandboxStatus): object {
  const present: Record<string, unknown> = sandbox.status ?? {}
  const next: Record<string, unknown> = { ...wanted }
  const changed = [...new Set([...Object.keys(present), ...Object.keys(next)])].filter(
    (field) => !isDeepStrictEqual(present[field], next[field]),
  )
  const { uid, resourceVersion } = sandbox.metadata
  const status = Object.fromEntries(changed.map((field) => [field, next[field] ?? null]))
  return { metadata: { uid, resourceVersion }, status }
}

function essentials(status: SandboxStatus) {
  const [ready, finished, suspended] = [conditionTypes.ready, conditionTypes.finished, conditionTypes.suspended].map(
    (type) => findCondition(status.conditions, type),
  )
  return {
    ready: ready?.status ?? 'False',
    reason: ready?.reason ?? sandboxReasons.dependenciesNotReady,
    finished: finished?.reason,
    suspended: suspended?.status,
    podIPs: status.podIPs ?? [],
  }
}

function conditionsOf({ sandbox, situation, pod, service }: ObservedSandbox, now: number): Condition[] {
  const { finished, podScheduled: scheduled, ready, suspended } = conditionTypes
  const wanted: Omit<NextCondition, 'observedGeneration'>[] = [
    { type: ready, ...readiness(sandbox, situation, pod, service) },
  ]
  const mirrored = pod && podScheduled(pod)
  if (mirrored) {
    const status = asStatus(mirrored.status)
    // Kubernetes leaves the reason and message of a scheduled Pod empty; a condition of ours says something.
    const message = mirrored.message || (status === 'True' ? 'The Pod has a node.' : 'The Pod has no node yet.')
    wanted.push({ type: scheduled, status, reason: mirrored.reason || 'PodScheduled', message })
  }
  const state = pod && podState(pod)
  if (state?.kind === 'succeeded' || state?.kind === 'failed') {
    const reason = state.kind === 'failed' ? sandboxReasons.podFailed : sandboxReasons.podSucceeded
    wanted.push({ type: finished, status: 'True', reason, message: state.because })
  }
  if (situation.kind === 'suspended') {
    wanted.push(
      pod
        ? { type: suspended, status: 'False', reason: 'PodNotTerminated', message: `Pod ${nameOf(pod)} is going.` }
        : { type: suspended, status: 'True', reason: 'PodTerminated', message: 'The Pod is gone; volumes are kept.' },
    )
  }
  const types = new Set(wanted.map(({ type }) => type))
  // An expired Sandbox loses its Pod, but whether it ran to its end stays known.
  if (situation.kind === 'expired') types.add(finished)
  const owned = new Set<string>([ready, scheduled, finished, suspended])
  const kept = (sandbox.status?.conditions ?? []).filter(({ type }) => types.has(type) || !owned.has(type))
  const observedGeneration = sandbox.metadata.generation
  return wanted.reduce<Condition[]>(
    (conditions, condition) => [...setCondition(conditions, { ...condition, observedGeneration }, now)],
    kept,
  )
}

function readiness(
  sandbox: Sandbox,
  situation: Situation,
  pod: Pod | undefined,
  service: Service | undefined,
): Pick<Condition, 'status' | 'reason' | 'message'> {
  switch (situation.kind) {
    case 'deleting':
      return no(sandboxReasons.dependenciesNotReady, 'The sandbox is being deleted.')
    case 'expired':
      return no(sandboxReasons.expired, `The sandbox has reached its shutdownTime, ${sandbox.spec.shutdownTime}.`)
    case 'suspended':
      return no(sandboxReasons.suspended, 'The sandbox is suspended: spec.operatingMode is Suspended.')
    case 'multiplePods':
      return no(
        sandboxReasons.multiplePods,
        `More than one Pod is controlled by this sandbox: ${situation.names.join(', ')}. Delete those that are not its own.`,
      )
    case 'refused':
      return no(situation.reason, situation.message)
    case 'running':
      return runningReadiness(sandbox, situation.missing, pod, service)
    default:
      return situation satisfies never
  }
}

function runningReadiness(
  sandbox: Sandbox,
  missing: readonly string[],
  pod: Pod | undefined,
  service: Service | undefined,
) {
  const state = pod && podState(pod)
  if (state?.kind === 'succeeded') return no(sandboxReasons.podSucceeded, state.because)
  if (state?.kind === 'failed') return no(sandboxReasons.podFailed, state.because)
  const gaps = [...missing]
  if (state?.kind === 'notReady') gaps.push(state.because)
  if (!pod && gaps.length === 0) gaps.push('The Pod does not exist yet.')
  if (sandbox.spec.service === true && !service && missing.length === 0) gaps.push('The Service does not exist yet.')
  if (gaps.length > 0) return no(sandboxReasons.dependenciesNotReady, gaps.join(' '))
  const message = service ? 'Pod is ready; Service exists.' : 'Pod is ready.'
  return { status: 'True' as const, reason: sandboxReasons.dependenciesReady, message }
}

function phaseOf({ situation, pod, sandbox }: ObservedSandbox): NonNullable<SandboxStatus['phase']> {
  if (situation.kind === 'deleting') return 'Terminating'
  if (situation.kind === 'expired') return situation.isCleared ? finalPhase(sandbox) : 'Terminating'
  if (situation.kind === 'suspended') return 'Paused'
  const state = pod && podState(pod)
  if (state?.kind === 'succeeded') return 'Succeeded'
  if (state?.kind === 'failed') return 'Failed'
  return pod?.status?.phase === 'Running' && pod.metadata.deletionTimestamp === undefined ? 'Running' : 'Pending'
}

/** A retained Sandbox that ran out of time came to its planned end, unless its Pod had failed before. */
function finalPhase(sandbox: Sandbox): 'Succeeded' | 'Failed' {
  const finished = findCondition(sandbox.status?.conditions, conditionTypes.finished)
  return finished?.reason === sandboxReasons.podFailed ? 'Failed' : 'Succeeded'
}

function no(reason: string, message: string) {
  return { status: 'False' as const, reason, message }
}

function asStatus(text: string): Condition['status'] {
  return text === 'True' || text === 'False' ? text : 'Unknown'
}
