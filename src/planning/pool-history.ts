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
  /** One went without having been of use: it ended early, or did not become Ready in time. */
  readonly failure?: (Complaint & { readonly uid: string; readonly because: 'dead' | 'stuck' }) | undefined
}

/**
 * The history with one more pass in it. Each failure in a row makes the next attempt wait 1 s, 2 s, 4 s … up to 5 min,
 * until the revision works. After one that ended, that is the time until the next create; one that was stuck is
 * replaced at once, and its successor is given that much longer, so that there is always one for people to look at.
 */
export function historyAfter(before: PoolHistory, seen: Observation, now: number): PoolHistory {
  const history = before.revision === seen.revision ? before : { ...cleanHistory, revision: seen.revision }
  if (seen.isWorking) {
    if (history.failures === 0) return history
    const { refusal } = history
    return { ...cleanHistory, revision: seen.revision, ...(refusal && { refusal }) }
  }
  // A sandbox whose delete failed is seen again, but went without use only once.
  if (!seen.failure || seen.failure.uid === history.failure?.uid) return history
  const { because, ...failure } = seen.failure
  const failures = history.failures + 1
  return { ...history, failures, failure, ...(because === 'dead' && { retryAt: now + waitMs(failures) }) }
}

/** How much longer than its grace a sandbox of a failing revision may take to become Ready; milliseconds. */
export function patienceMs(history: PoolHistory, revision: string | undefined): number {
  return history.revision === revision ? waitMs(history.failures) : 0
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
  return times === 0 ? 0 : Math.min(longestWaitMs, firstWaitMs * 2 ** (times - 1))
}
