import { isDeepStrictEqual } from 'node:util'
import type { Sandbox, SandboxClaim, SandboxClaimStatus } from '../api/kinds.ts'
import { claimReasons, conditionTypes } from '../api/vocabulary.ts'
import type { Condition } from '../api/schema.ts'
import { findCondition, setCondition } from './conditions.ts'

/** Ready=False with a reason of our own; the bound sandbox, if any, stays named. */
export interface NotReady {
  readonly reason: string
  readonly message: string
}

/**
 * The status of a claim that is bound to `sandbox`: its Ready and Finished mirrored, its name and addresses. One that is
 * being deleted is not ready any more, whatever it last said of itself.
 */
export function boundStatus(claim: SandboxClaim, sandbox: Sandbox, now: number): SandboxClaimStatus {
  const finished = findCondition(sandbox.status?.conditions, conditionTypes.finished)
  const conditions = setCondition(
    claim.status?.conditions,
    readyCondition(claim, forwardedReady(sandbox)),
    notBefore(claim, now),
  ).filter((condition) => condition.type !== conditionTypes.finished)
  // Mirrored with its own time: the claim's time to live after the end counts from there.
  if (finished) conditions.push(mirrored(claim, finished))
  const podIPs = sandbox.status?.podIPs ?? []
  return { conditions, sandbox: { name: sandbox.metadata.name ?? '', ...(podIPs.length > 0 && { podIPs }) } }
}

/** The status of a claim that is not ready for a reason of our own. `keepSandbox` keeps the name it was bound to. */
export function notReadyStatus(
  claim: SandboxClaim,
  { reason, message }: NotReady,
  now: number,
  options: { keepSandbox: boolean },
): SandboxClaimStatus {
  const conditions = setCondition(
    claim.status?.conditions,
    readyCondition(claim, { status: 'False', reason, message }),
    notBefore(claim, now),
  )
  const name = claim.status?.sandbox?.name
  return { conditions: [...conditions], ...(options.keepSandbox && name !== undefined && { sandbox: { name } }) }
}

/**
 * The status of a claim that was over when its sandbox went, and keeps its name: not ready, without addresses. Undefined
 * when it says so already.
 */
export function lostStatus(claim: SandboxClaim, now: number): SandboxClaimStatus | undefined {
  const ready = findCondition(claim.status?.conditions, conditionTypes.ready)
  const wasReady = ready?.status === 'True'
  if (claim.status?.sandbox?.name === undefined || !(wasReady || claim.status.sandbox.podIPs)) return undefined
  const missing = {
    reason: claimReasons.sandboxMissing,
    message: `Sandbox ${claim.status.sandbox.name} no longer exists.`,
  }
  return notReadyStatus(claim, wasReady || !ready ? missing : ready, now, { keepSandbox: true })
}

/** The merge patch that turns what we write of the claim's status into `wanted`; undefined when they already agree. */
export function claimStatusPatch(claim: SandboxClaim, wanted: SandboxClaimStatus): object | undefined {
  const current = claim.status ?? {}
  const isSame =
    isDeepStrictEqual(current.conditions, wanted.conditions) && isDeepStrictEqual(current.sandbox, wanted.sandbox)
  if (isSame) return undefined
  return {
    metadata: { resourceVersion: claim.metadata.resourceVersion },
    status: {
      conditions: wanted.conditions,
      sandbox: wanted.sandbox
        ? { name: wanted.sandbox.name ?? null, podIPs: wanted.sandbox.podIPs ?? null }
        : current.sandbox
          ? null
          : undefined,
    },
  }
}

function forwardedReady(sandbox: Sandbox): Pick<Condition, 'status' | 'reason' | 'message'> {
  const ready = findCondition(sandbox.status?.conditions, conditionTypes.ready)
  const reason = claimReasons.sandboxNotReady
  if (!ready) return { status: 'False', reason, message: 'The sandbox has not reported yet.' }
  const isGoing = sandbox.metadata.deletionTimestamp !== undefined
  if (isGoing && ready.status === 'True') return { status: 'False', reason, message: 'The sandbox is being deleted.' }
  return ready
}

function readyCondition(claim: SandboxClaim, ready: Pick<Condition, 'status' | 'reason' | 'message'>) {
  const { status, reason, message } = ready
  const observedGeneration = claim.metadata.generation
  return {
    type: conditionTypes.ready,
    status,
    reason,
    message,
    ...(observedGeneration !== undefined && { observedGeneration }),
  }
}

function mirrored(claim: SandboxClaim, condition: Condition): Condition {
  const { observedGeneration: _sandboxGeneration, ...rest } = condition
  const observedGeneration = claim.metadata.generation
  return { ...rest, ...(observedGeneration !== undefined && { observedGeneration }) }
}

/** A transition never predates the claim, however the clocks differ. */
function notBefore(claim: SandboxClaim, now: number): number {
  return Math.max(now, Date.parse(claim.metadata.creationTimestamp ?? '') || now)
}
