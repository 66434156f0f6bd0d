import type { Complaint, PoolHistory } from './pool-view.ts'

export const cleanHistory: PoolHistory = { revision: undefined, failures: 0, retryAt: 0 }

/** The first wait is short, since a failure may be chance; five minutes is also what a sandbox is given to become Ready. */
const firstWaitMs = 1_000
const longestWaitMs = 5 * 60_000

/** What one pass saw of the current revision. */
export interface Observation {
  readonly revision: string | undefined
  /** A sandbox of it is available. */
  readonly isWorking: boolean
  /** One went without having been of use. */
  readonly failure?: (Complaint & { readonly uid: string }) | undefined
}

/** The history with one more pass in it. A revision that fails waits 1 s, 2 s, 4 s … up to 5 min, until it works. */
export function historyAfter(before: PoolHistory, seen: Observation, now: number): PoolHistory {
  const history = before.revision === seen.revision ? before : { ...cleanHistory, revision: seen.revision }
  if (seen.isWorking) {
    if (history.failures === 0) return history
    const { refusal } = history
    return { ...cleanHistory, revision: seen.revision, ...(refusal && { refusal }) }
  }
  // A sandbox whose delete failed is seen again, but went without use only once.
  if (!seen.failure || seen.failure.uid === history.failure?.uid) return history
  const failures = history.failures + 1
  return { ...history, failures, retryAt: now + waitMs(failures), failure: seen.failure }
}

/** The API server refused a create: creating rests as it does after a failure, and the condition says why. */
export function afterRefusal(history: PoolHistory, refusal: Complaint, now: number): PoolHistory {
  const refusals = (history.refusal?.times ?? 0) + 1
  return { ...history, refusal: { ...refusal, times: refusals, retryAt: now + waitMs(refusals) } }
}

/** A create went well: what was refused before no longer matters. */
export function afterCreate({ refusal: _over, ...history }: PoolHistory): PoolHistory {
  return history
}

function waitMs(times: number): number {
  return Math.min(longestWaitMs, firstWaitMs * 2 ** (times - 1))
}
