import type { Clock, Timer } from '../runtime/clock.ts'

/** Why a request was given up. */
export type CutoffReason = 'aborted' | 'deadline'

/** Thrown out of {@link Cutoff.race}. */
export class CutoffError extends Error {
  override readonly name = 'CutoffError'
  readonly reason: CutoffReason

  constructor(reason: CutoffReason) {
    super(reason)
    this.reason = reason
  }
}

/**
 * The end of one request's patience: a deadline, the caller's signal, or both, over everything the request needs
 * (credentials, a connection, the reply). Must be closed, so that neither the timer nor the listener outlives it.
 */
export class Cutoff {
  #reason: CutoffReason | undefined
  #onEnd: ((reason: CutoffReason) => void) | undefined
  readonly #timer: Timer
  readonly #signal: AbortSignal | undefined
  readonly #abort = () => this.#end('aborted')

  constructor(clock: Clock, timeoutMs: number, signal: AbortSignal | undefined) {
    this.#timer = clock.setTimer(() => this.#end('deadline'), timeoutMs)
    this.#signal = signal
    if (signal?.aborted) this.#end('aborted')
    else signal?.addEventListener('abort', this.#abort, { once: true })
  }

  /** Calls `callback` once when the patience ends, at once if it has; replaces the callback before it. */
  onEnd(callback: (reason: CutoffReason) => void): void {
    this.#onEnd = callback
    if (this.#reason !== undefined) callback(this.#reason)
  }

  /** `promise`, or a {@link CutoffError} when the patience ends first. */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.onEnd((reason) => reject(new CutoffError(reason)))
      promise.then(resolve, reject)
    })
  }

  /** From here on only the caller's signal ends it: a watch, once open, stays open. */
  liftDeadline(): void {
    this.#timer.cancel()
  }

  close(): void {
    this.#timer.cancel()
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#onEnd = undefined
  }

  #end(reason: CutoffReason): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    const onEnd = this.#onEnd
    this.close()
    onEnd?.(reason)
  }
}
