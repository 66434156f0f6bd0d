import { type Clock, sleepWith, type Timer } from './clock.ts'

interface PendingTimer {
  readonly dueMs: number
  readonly callback: () => void
}

/** A clock for tests: time stands still until it is advanced. */
export class ManualClock implements Clock {
  #epochMs: number
  #elapsedMs = 0
  readonly #timers = new Set<PendingTimer>()
  /** The advance under way; a second one begins after it, or time would run backwards. */
  #advancing: Promise<void> = Promise.resolve()

  /** `startMs` is the first value of `now()`, in milliseconds since the epoch. */
  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#epochMs = startMs
  }

  now(): number {
    return this.#epochMs + this.#elapsedMs
  }

  monotonic(): number {
    return this.#elapsedMs
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const timer = { dueMs: this.#elapsedMs + Math.max(0, delayMs), callback }
    this.#timers.add(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepWith(this, delayMs, signal)
  }

  /** Timers that are set and have neither run nor been cancelled. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /** Lets `ms` pass: runs due timers in order, each followed by everything that became ready because of it. */
  advance(ms: number): Promise<void> {
    const advanced = this.#advancing.then(() => this.#pass(ms))
    this.#advancing = advanced.catch(() => {})
    return advanced
  }

  /** Sets the wall clock `ms` forward (or back) without letting time pass, as an administrator would. */
  jump(ms: number): void {
    this.#epochMs += ms
  }

  async #pass(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms
    await settle()
    for (let timer = this.#next(untilMs); timer !== undefined; timer = this.#next(untilMs)) {
      this.#timers.delete(timer)
      this.#elapsedMs = timer.dueMs
      timer.callback()
      await settle()
    }
    this.#elapsedMs = untilMs
    await settle()
  }

  /** The earliest timer due by `untilMs`; of equals, the one set first. */
  #next(untilMs: number): PendingTimer | undefined {
    let next: PendingTimer | undefined
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer
    }
    return next
  }
}

/** Resolves after every microtask that is ready, and those that follow from them. */
function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
