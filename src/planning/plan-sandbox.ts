import type { Pod } from '../api/core.ts'
import type { SandboxStatus } from '../api/kinds.ts'
import { conditionTypes, sandboxReasons } from '../api/vocabulary.ts'
import { findCondition } from './conditions.ts'
import { deletePod, planPod, planService, planVolumeClaims } from './plan-sandbox-parts.ts'
import { nameOf } from './sandbox-identity.ts'
import { isOutsideCaches } from './sandbox-ownership.ts'
import { sandboxStatus, statusChange, statusPatch, type Situation } from './sandbox-status.ts'
import { isCreate, type SandboxStep } from './sandbox-steps.ts'
import {
  chiefPod,
  isOverdue,
  living,
  longestDeferralMs,
  ownPods,
  ownService,
  provenPodUid,
  type SandboxView,
} from './sandbox-view.ts'

export type StatusStep =
  | { readonly kind: 'unchanged' }
  /** Different, but nothing anyone waits for: it joins the next write, within a second. */
  | { readonly kind: 'later' }
  /** `patch` is a merge patch on the status subresource. */
  | { readonly kind: 'write'; readonly status: SandboxStatus; readonly patch: object }

export interface SandboxPlan {
  readonly steps: readonly SandboxStep[]
  readonly status: StatusStep
  /** True when the plan holds something back: the caller notes since when, and tells it in `deferredSince`. */
  readonly defers: boolean
  /** When to look again though nothing has changed. */
  readonly again: { readonly afterMs: number; readonly because: string } | undefined
}

/** What is in the way may be outside our caches: look again this often. */
const obstructedRecheckMs = 2_000
/** Not Ready, and nothing but an event would change it: look again all the same. */
const unsettledRecheckMs = 30_000

/**
 * The decision ladder of a Sandbox. The first of 0 to 2 that holds decides; otherwise 3 to 5 add up. The numbers are
 * those of the tests.
 *
 * 0. Being deleted: the garbage collector takes what is ours. Say so.
 * 1. Expired: say so in the status first; then delete Pod and Service, then, if the policy is Delete, the Sandbox.
 * 2. Suspended: delete the Pod; volumes and Service stay.
 * 3. Volumes: create the claims that are missing. A claim of another owner keeps the Pod from being created.
 * 4. Service: create it, put it right, or remove it.
 * 5. Pod: more than one → say so. Someone else's → wait for it to go, or take over one that was offered. Not provably
 *    ours → replace it. Failed → leave or replace it. Absent → create it. Ours → keep its metadata in line.
 * 6. Publish the status: at once what others act on, within a second the rest.
 */
export function planSandbox(view: SandboxView, now: number): SandboxPlan {
  const { sandbox } = view
  if (sandbox.metadata.deletionTimestamp !== undefined) {
    // 0. Why it ends, once told, stays told.
    const situation: Situation = isMarkedExpired(view) ? { kind: 'expired', isCleared: false } : { kind: 'deleting' }
    return { ...conclude(view, { situation }, now), again: undefined }
  }
  const expiry = sandbox.spec.shutdownTime === undefined ? undefined : Date.parse(sandbox.spec.shutdownTime)
  if (expiry !== undefined && expiry <= now) return planExpired(view, now) // 1
  const plan = sandbox.spec.operatingMode === 'Suspended' ? planSuspended(view, now) : planRunning(view, now)
  return expiry === undefined ? plan : wakeBy(plan, expiry - now, 'it expires then')
}

function planExpired(view: SandboxView, now: number): SandboxPlan {
  const { sandbox } = view
  const pods = ownPods(view)
  const service = ownService(view)
  const situation: Situation = { kind: 'expired', isCleared: pods.length === 0 && !service }
  // Watchers must be able to read why before anything goes.
  if (!isMarkedExpired(view)) {
    return wakeBy(conclude(view, { situation }, now), 0, 'the mark is set and the rest may go')
  }
  const steps: SandboxStep[] = living(pods).map((pod) => deletePod(pod, 'the sandbox has expired'))
  if (service && service.metadata.deletionTimestamp === undefined) {
    steps.push({ kind: 'deleteService', object: service })
  }
  const plan = conclude(view, { situation, steps }, now)
  if (sandbox.spec.shutdownPolicy !== 'Delete') return plan
  return { ...plan, steps: [...steps, { kind: 'deleteSandbox', object: sandbox }], status: { kind: 'unchanged' } }
}

function isMarkedExpired({ sandbox }: SandboxView): boolean {
  return findCondition(sandbox.status?.conditions, conditionTypes.ready)?.reason === sandboxReasons.expired
}

function planSuspended(view: SandboxView, now: number): SandboxPlan {
  const service = planService(view)
  const pods = living(ownPods(view)).map((pod) => deletePod(pod, 'the sandbox is suspended'))
  return conclude(view, { situation: { kind: 'suspended' }, steps: [...service.steps, ...pods] }, now)
}

function planRunning(view: SandboxView, now: number): SandboxPlan {
  const volumes = planVolumeClaims(view) // 3
  const service = planService(view) // 4
  const pod = planPod(view, volumes.missing.length === 0, now) // 5
  // The Pod takes longest to come up, so it goes before the Service.
  const steps = [...volumes.steps, ...pod.steps, ...service.steps]
  const missing = [...volumes.missing, ...service.missing, ...pod.missing]

  const several = living(ownPods(view))
  if (several.length > 1) {
    return conclude(view, { situation: { kind: 'multiplePods', names: several.map(nameOf) }, steps }, now)
  }
  const isRefused = view.refusal !== undefined && steps.some(isCreate)
  if (isRefused && view.refusal) {
    const { reason, message, retryAt } = view.refusal
    const allowed = now < retryAt ? steps.filter((step) => !isCreate(step)) : steps
    const plan = conclude(view, { situation: { kind: 'refused', reason, message }, steps: allowed }, now)
    return now < retryAt ? wakeBy(plan, retryAt - now, 'a refused creation is due again') : plan
  }
  const plan = conclude(view, { situation: { kind: 'running', missing }, steps, defers: pod.defers }, now)
  if (pod.recheckMs !== undefined) return wakeBy(plan, pod.recheckMs, 'its Pod is due then')
  return missing.length > 0 ? wakeBy(plan, obstructedRecheckMs, 'something it needs is not its own') : plan
}

interface Conclusion {
  readonly situation: Situation
  readonly steps?: readonly SandboxStep[]
  readonly defers?: boolean | undefined
}

/** 6: adds the status to the steps. */
function conclude(view: SandboxView, { situation, steps = [], defers = false }: Conclusion, now: number): SandboxPlan {
  const { sandbox, config } = view
  const pod = chiefPod(view)
  const service = ownService(view)
  const status = sandboxStatus(
    {
      sandbox,
      situation,
      pod,
      service: service?.metadata.deletionTimestamp === undefined ? service : undefined,
      podUID: pod && provenPodUid(pod, view),
      clusterDomain: config.sandboxes.clusterDomain,
    },
    now,
  )
  const step = statusStep(view, status, now)
  const plan = { steps, status: step, defers: defers || step.kind === 'later', again: undefined }
  const isReady = findCondition(status.conditions, conditionTypes.ready)?.status === 'True'
  const unsettled =
    isReady || isAtRest(situation, status, pod) ? plan : wakeBy(plan, recheckMs(view), 'it is not settled')
  if (step.kind !== 'later') return unsettled
  return wakeBy(unsettled, (view.deferredSince ?? now) + longestDeferralMs - now, 'the status waits for company')
}

function statusStep(view: SandboxView, status: SandboxStatus, now: number): StatusStep {
  const change = statusChange(view.sandbox.status, status)
  if (change === 'none') return { kind: 'unchanged' }
  if (change === 'minor' && !isOverdue(view, now)) return { kind: 'later' }
  return { kind: 'write', status, patch: statusPatch(view.sandbox, status) }
}

/** A Pod that was planted in our name is not seen to go. */
function recheckMs(view: SandboxView): number {
  return ownPods(view).some(isOutsideCaches) ? obstructedRecheckMs : unsettledRecheckMs
}

/** Not Ready, and meant to stay so until someone changes the Sandbox. */
function isAtRest(situation: Situation, status: SandboxStatus, pod: Pod | undefined): boolean {
  if (situation.kind === 'expired') return situation.isCleared
  if (situation.kind === 'suspended') return pod === undefined
  return findCondition(status.conditions, conditionTypes.finished) !== undefined
}

/** The plan, looked at again after `afterMs` at the latest; never when that is infinite. */
function wakeBy(plan: SandboxPlan, afterMs: number, because: string): SandboxPlan {
  if (afterMs === Infinity || (plan.again && plan.again.afterMs <= afterMs)) return plan
  return { ...plan, again: { afterMs, because } }
}
