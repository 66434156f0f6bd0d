import type { SandboxClaim } from '../api/kinds.ts'
import { conditionTypes } from '../api/vocabulary.ts'
import { findCondition } from './conditions.ts'

/**
 * When the claim expires, in milliseconds since the epoch: the earlier of `shutdownTime` and
 * `Finished.lastTransitionTime + ttlSecondsAfterFinished`; `undefined` when neither applies. A time that cannot be read
 * never comes.
 */
export function claimExpiry(claim: SandboxClaim): number | undefined {
  const { shutdownTime, ttlSecondsAfterFinished } = claim.spec.lifecycle ?? {}
  const finished = findCondition(claim.status?.conditions, conditionTypes.finished)
  const deadlines: number[] = []
  if (shutdownTime !== undefined) deadlines.push(Date.parse(shutdownTime))
  if (ttlSecondsAfterFinished !== undefined && finished?.status === 'True') {
    deadlines.push(Date.parse(finished.lastTransitionTime) + ttlSecondsAfterFinished * 1000)
  }
  const readable = deadlines.filter((deadline) => !Number.isNaN(deadline))
  return readable.length === 0 ? undefined : Math.min(...readable)
}
