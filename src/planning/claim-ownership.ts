import type { Sandbox, SandboxClaim } from '../api/kinds.ts'
import { claimReasons, conditionTypes } from '../api/vocabulary.ts'
import { controllerOf } from '../kube/object.ts'
import { findCondition } from './conditions.ts'
import { verifyBound, verifyOrigin, type OriginKeys } from './origin.ts'

/** What a claim and a sandbox can be to each other. */

/**
 * Controlled by the claim's UID, with a proof that the controllers made or bound it for this claim. When the key of a
 * proof is lost, the name in the status, which only the controllers write, stands in for it.
 */
export function isOurs(sandbox: Sandbox, claim: SandboxClaim, keys: OriginKeys): boolean {
  const uid = claim.metadata.uid ?? ''
  if (controllerOf(sandbox)?.uid !== uid) return false
  const bound = verifyBound(keys, sandbox, uid)
  const verdict = bound === 'invalid' ? verifyOrigin(keys, sandbox, uid) : bound
  return verdict === 'valid' || (verdict === 'unknown-key' && claim.status?.sandbox?.name === sandbox.metadata.name)
}

export function isStaying({ metadata }: Sandbox): boolean {
  return metadata.deletionTimestamp === undefined
}

/** Made for an earlier claim of the same name: it goes when the garbage collector gets to it. */
export function isPredecessors(claim: SandboxClaim, sandbox: Sandbox): boolean {
  const owner = controllerOf(sandbox)
  return owner?.kind === 'SandboxClaim' && owner.name === claim.metadata.name && owner.uid !== claim.metadata.uid
}

/** The claim's sandbox has run to its end, or its time has: such a claim is never bound again. */
export function isOver(claim: SandboxClaim): boolean {
  const ready = findCondition(claim.status?.conditions, conditionTypes.ready)
  const finished = findCondition(claim.status?.conditions, conditionTypes.finished)
  const overReasons: readonly string[] = [claimReasons.claimExpired, claimReasons.sandboxExpired]
  return finished?.status === 'True' || (ready !== undefined && overReasons.includes(ready.reason))
}

/** By creation time, then by UID: every controller picks the same one. There is at least one. */
export function oldest(sandboxes: readonly Sandbox[]): Sandbox {
  return sandboxes.reduce((first, next) => {
    const a = first.metadata
    const b = next.metadata
    const isOlder =
      (b.creationTimestamp ?? '') < (a.creationTimestamp ?? '') ||
      (b.creationTimestamp === a.creationTimestamp && (b.uid ?? '') < (a.uid ?? ''))
    return isOlder ? next : first
  })
}
