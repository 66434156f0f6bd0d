/** How a slow start went: how many calls succeeded, and the first error if any failed. */
export interface SlowStartResult {
  readonly done: number
  readonly error?: unknown
}

/**
 * Calls `fn` for 0 … count-1 in batches of `initial`, then twice as many each time, up to `largest` at once. A batch in
 * which a call fails is the last one: a fault that hits every call (a quota, a refusing webhook) costs few requests.
 * Never rejects.
 */
export async function slowStartBatch(
  count: number,
  initial: number,
  fn: (index: number) => Promise<unknown>,
  largest = 64,
): Promise<SlowStartResult> {
  let done = 0
  for (let next = 0, size = initial; next < count; size = Math.min(size * 2, largest)) {
    const batch = Array.from({ length: Math.min(size, largest, count - next) }, (_, offset) => next + offset)
    next += batch.length
    const results = await Promise.allSettled(batch.map(async (index) => fn(index)))
    done += results.filter((result) => result.status === 'fulfilled').length
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) return { done, error: failed.reason }
  }
  return { done }
}
