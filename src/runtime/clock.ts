/** A timer that has been set; `cancel` is idempotent. */
export interface Timer {
  cancel(): void
}

/** Time as an argument. Only this file reads the system's clock and timers. */
export interface Clock {
  /** Milliseconds since the epoch. Can jump when the machine's clock is set. */
  now(): number
  /** Milliseconds since an arbitrary moment; never jumps, so lengths of time are measured with it. */
  monotonic(): number
  /** Runs `callback` once after `delayMs`; delays beyond Node's 24.8 days are chained. */
  setTimer(callback: () => void, delayMs: number): Timer
  /** Resolves after `delayMs`, or at once when `signal` ends. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>
}

/** Node keeps a timer's delay in 31 bits and fires at once beyond that. */
const longestNodeTimerMs = 2 ** 31 - 1

/** The system's time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(callback, delayMs) {
    let timeout: NodeJS.Timeout
    const arm = (remainingMs: number): void => {
      const stepMs = Math.min(remainingMs, longestNodeTimerMs)
      timeout = setTimeout(() => (remainingMs > stepMs ? arm(remainingMs - stepMs) : callback()), stepMs)
    }
    arm(Math.max(0, delayMs))
    return { cancel: () => clearTimeout(timeout) }
  },
  sleep: (delayMs, signal) => sleepWith(systemClock, delayMs, signal),
}

/** {@link Clock.sleep} in terms of `clock.setTimer`; leaves neither a timer nor a listener behind. */
export function sleepWith(clock: Pick<Clock, 'setTimer'>, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const finish = (): void => {
      timer.cancel()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const timer = clock.setTimer(finish, delayMs)
    signal?.addEventListener('abort', finish, { once: true })
  })
}
