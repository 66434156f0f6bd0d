import type { Clock, Timer } from './clock.ts'

/** Why an attempt was cut off: its parent ended, nothing was heard for too long, or its owner wants something else. */
export type Interruption = 'stopped' | 'idle' | 'interrupted'

/**
 * One request that can be cut off. Unlike `AbortSignal.any` it knows the reason, watches for silence, and after
 * `release` leaves no timer, no listener on the long-lived parent, and no request open.
 */
export class Attempt {
  readonly #clock: Clock
  readonly #parent: AbortSignal | undefined
  readonly #controller = new AbortController()
  readonly #onParentAbort = (): void => this.interrupt('stopped')
  #timer: Timer | undefined
  #idleMs: number | undefined
  #heardMs: number
  #interruption: Interruption | undefined

  /**
   * Ends with `parent`, if there is one. `idleMs`: how long it may go without `heard` being called; absent: for ever.
   */
  constructor(clock: Clock, parent: AbortSignal | undefined, idleMs?: number) {
    this.#clock = clock
    this.#parent = parent
    this.#idleMs = idleMs
    this.#heardMs = clock.monotonic()
    if (parent?.aborted) this.interrupt('stopped')
    else parent?.addEventListener('abort', this.#onParentAbort, { once: true })
    if (idleMs !== undefined) this.#watchForSilence(idleMs)
  }

  /** For the request. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get interruption(): Interruption | undefined {
    return this.#interruption
  }

  /** There was a sign of life; from now on it may stay silent for `idleMs`. Cheap: the timer is only moved when it fires. */
  heard(idleMs = this.#idleMs): void {
    this.#idleMs = idleMs
    this.#heardMs = this.#clock.monotonic()
  }

  /** Cuts the request off; the first reason stays. */
  interrupt(interruption: Interruption): void {
    this.#interruption ??= interruption
    this.#controller.abort()
  }

  /** The attempt is over: whatever is still open is closed. */
  release(): void {
    this.#timer?.cancel()
    this.#parent?.removeEventListener('abort', this.#onParentAbort)
    this.#controller.abort()
  }

  #watchForSilence(delayMs: number): void {
    this.#timer = this.#clock.setTimer(() => {
      const remainingMs = this.#heardMs + (this.#idleMs ?? 0) - this.#clock.monotonic()
      if (remainingMs <= 0) this.interrupt('idle')
      else this.#watchForSilence(remainingMs)
    }, delayMs)
  }
}
