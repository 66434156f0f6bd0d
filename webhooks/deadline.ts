import type { Clock } from '../src/runtime/clock.ts'

/** A piece of work did not finish within the time that was left for the answer. */
export class OutOfTime extends Error {
  override readonly name = 'OutOfTime'
}

/** The time left for one answer, shared by every lookup made for it. */
export interface Deadline {
  /** Settles as `work` does, or rejects with {@link OutOfTime} when time is up; `work` is then told by its signal. */
  limit<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>
}

/** Half of what the API server waits stays for the way there and back, and for the process being busy. */
const shareOfTimeout = 0.5

/**
 * Starts the time for an answer: `budgetMs`, or less when the API server waits for less (`timeoutMs`, which it says in
 * the query of each call).
 */
export function startDeadline(clock: Clock, budgetMs: number, timeoutMs?: number): Deadline {
  const allowedMs = timeoutMs === undefined ? budgetMs : Math.min(budgetMs, timeoutMs * shareOfTimeout)
  const endsAt = clock.monotonic() + allowedMs
  return {
    async limit(work) {
      const abandoned = new AbortController()
      const late = Promise.withResolvers<never>()
      const timer = clock.setTimer(() => {
        late.reject(new OutOfTime('no answer in time'))
        abandoned.abort()
      }, endsAt - clock.monotonic())
      try {
        return await Promise.race([work(abandoned.signal), late.promise])
      } finally {
        timer.cancel()
      }
    },
  }
}

const unitsMs: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
}

/** A Go duration such as `5s` or `1m30s` in milliseconds; undefined for anything else. */
export function goDurationMs(text: unknown): number | undefined {
  if (typeof text !== 'string' || !/^(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|ns))+$/.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/([\d.]+)([a-zµ]+)/g))
    total += Number(amount) * (unitsMs[unit ?? ''] ?? 0)
  return total
}
