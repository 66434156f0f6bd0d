import { setTimeout as sleep } from 'node:timers/promises'
import { DevclusterError } from './error.ts'

export interface WaitOptions {
  readonly withinMs: number
  /** Default 50 ms. */
  readonly everyMs?: number
  /** When it resolves, the waiting is over and its error is thrown. */
  readonly failed?: Promise<Error>
}

/**
 * Polls until `isReady` says so. `what` names it in the error.
 * @throws DevclusterError `NotReadyInTime`, or the error of `failed`.
 */
export async function waitUntil(
  what: string,
  isReady: () => Promise<boolean>,
  { withinMs, everyMs = 50, failed }: WaitOptions,
): Promise<void> {
  let failure: Error | undefined
  void failed?.then((error) => {
    failure = error
  })
  const deadline = Date.now() + withinMs
  while (!(await isReady())) {
    if (failure) throw failure
    if (Date.now() > deadline) {
      throw new DevclusterError('NotReadyInTime', `${what} is not ready after ${withinMs / 1000} s`)
    }
    await sleep(everyMs)
  }
}
