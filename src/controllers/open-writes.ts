import type { SandboxClaim } from '../api/kinds.ts'
import { isKubeError } from '../kube/errors.ts'
import { keyOf } from '../kube/object.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { ClaimSources } from './claim-gather.ts'
import type { ClaimWrite } from './claim-memory.ts'

/** A finished pass, or `go-on`: the claim is planned again at once, on what this step has changed. */
export type Step = Outcome | 'go-on'

/** A write whose reply was lost is repeated after this, then after twice as long, and so on. */
const firstRepeatMs = 100
/** Short against the patience of whoever waits for the claim, long against an API server that is struggling. */
const longestRepeatMs = 5_000

/** Keeps the write to be repeated as it was; nothing else is done for the claim until its outcome is definite. */
export function keepOpen(write: ClaimWrite, claim: SandboxClaim, { memory }: ClaimSources): Step {
  const key = keyOf(claim)
  const losses = (memory.openWrites.get(key)?.losses ?? 0) + 1
  memory.openWrites.set(key, { claimUid: claim.metadata.uid ?? '', write, losses })
  const afterMs = Math.min(longestRepeatMs, firstRepeatMs * 2 ** (losses - 1))
  return { kind: 'recheck', afterMs, because: 'the reply to a write was lost' }
}

/** Errors that come before the API server looks at the object, so that they do not tell whether an earlier attempt changed it. */
export function saysNothingOfEarlier(error: unknown): boolean {
  return !isKubeError(error, 'NotFound', 'AlreadyExists', 'Conflict', 'Invalid', 'BadRequest', 'Forbidden')
}
