/** A timer that has been set; `cancel` is idempotent. */
export interface Timer {
  cancel(): void
}

/** Time as an argument. Only this file reads the system's clock and timers. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Runs `callback` once after `delayMs`; delays beyond Node's 24.8 days are chained. */
  setTimer(callback: () => void, delayMs: number): Timer
  /** Resolves after `delayMs`, or at once when `signal` ends. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>
}
