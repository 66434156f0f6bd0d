export interface Backoff {
  /** Delay after the first failure, in milliseconds. */
  readonly baseMs: number
  /** No delay is longer. */
  readonly maxMs: number
}

/**
 * Milliseconds to wait after `failures` failures in a row before this one: doubles each time up to the maximum, then
 * loses up to half of it at random so that many who failed together do not return together.
 */
export function backoffMs({ baseMs, maxMs }: Backoff, failures: number, random: () => number): number {
  const fullMs = Math.min(maxMs, baseMs * 2 ** failures)
  return fullMs * (1 - random() / 2)
}
