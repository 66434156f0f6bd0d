import { backoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import { DelayedKeys } from './delayed-keys.ts'

/**
 * Per-key back-off after a failed reconcile. It starts at 5 ms, as in client-go, so that one lost race costs nothing;
 * client-go's 1000 s at the other end would leave a key alone for a quarter of an hour after an outage, so ours ends at
 * one minute: at most one attempt per key and minute against something that stays broken.
 */
const retryBackoff = { baseMs: 5, maxMs: 60_000 }

/** What a queue tells its metrics. */
export interface WorkQueueHooks {
  /** How many keys are ready to be taken; called on every change. */
  onDepth?(depth: number): void
  /** How long a key was ready before it was taken, in milliseconds. */
  onTaken?(waitedMs: number): void
  onRetry?(): void
}

export interface WorkQueueOptions {
  readonly clock: Clock
  readonly hooks?: WorkQueueHooks
  /** Jitter of the back-off: a number in [0, 1). */
  readonly random?: () => number
}

/**
 * Keys that want work. A key is ready at most once, and never worked on twice at a time: added while it is being worked
 * on, it becomes ready again when that work is `done`. Every method but `take` is synchronous.
 */
export class WorkQueue {
  readonly #clock: Clock
  readonly #hooks: WorkQueueHooks
  readonly #random: () => number
  readonly #delayed: DelayedKeys
  /** Keys in the order they became ready; what lies before `#head` was taken. */
  #ready: string[] = []
  #head = 0
  /** Wanted keys → when they were first wanted. Ready ones and those to run again after `done`. */
  readonly #wanted = new Map<string, number>()
  readonly #working = new Set<string>()
  readonly #failures = new Map<string, number>()
  /** Callers of `take` with nothing to do, longest waiting first. */
  readonly #idle = new Set<(key: string) => void>()

  constructor({ clock, hooks = {}, random = Math.random }: WorkQueueOptions) {
    this.#clock = clock
    this.#hooks = hooks
    this.#random = random
    this.#delayed = new DelayedKeys(clock, (key) => this.add(key))
  }

  /** How many keys are ready to be taken. */
  get depth(): number {
    return this.#ready.length - this.#head
  }

  /** How many keys wait for a delay to pass. */
  get delayed(): number {
    return this.#delayed.size
  }

  /** Makes the key ready now. */
  add(key: string): void {
    if (this.#wanted.has(key)) return
    this.#wanted.set(key, this.#clock.monotonic())
    if (!this.#working.has(key)) this.#push(key)
  }

  /** Makes the key ready after `delayMs`; of several delays for one key the earliest wins. */
  addAfter(key: string, delayMs: number): void {
    if (delayMs <= 0) this.add(key)
    else this.#delayed.add(key, delayMs)
  }

  /** Makes the key ready after its back-off, which doubles from 5 ms to one minute until `forget`. */
  addRateLimited(key: string): void {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.#hooks.onRetry?.()
    this.addAfter(key, backoffMs(retryBackoff, failures, this.#random))
  }

  /** Forgets the keys that wait for a delay, and with them the timer, which would keep a finished process alive. */
  clearDelayed(): void {
    this.#delayed.clear()
  }

  /** Ends the key's back-off: its next failure counts as the first. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /** How often the key was rate limited since it was last forgotten. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0
  }

  /** The next ready key, waiting for one if need be; undefined once `signal` has ended. Follow with `done(key)`. */
  take(signal: AbortSignal): Promise<string | undefined> {
    if (signal.aborted) return Promise.resolve(undefined)
    if (this.depth > 0) return Promise.resolve(this.#shift())
    return new Promise((resolve) => {
      const give = (key: string): void => {
        signal.removeEventListener('abort', stop)
        resolve(key)
      }
      const stop = (): void => {
        this.#idle.delete(give)
        resolve(undefined)
      }
      this.#idle.add(give)
      signal.addEventListener('abort', stop, { once: true })
    })
  }

  /** The work on the key has ended, well or not. */
  done(key: string): void {
    this.#working.delete(key)
    if (this.#wanted.has(key)) this.#push(key)
  }

  #push(key: string): void {
    this.#ready.push(key)
    this.#hooks.onDepth?.(this.depth)
    const [give] = this.#idle
    if (give === undefined) return
    this.#idle.delete(give)
    give(this.#shift())
  }

  #shift(): string {
    const key = this.#ready[this.#head]
    if (key === undefined) throw new Error('took from an empty queue')
    this.#head += 1
    // Array.shift would move every key each time; this moves each key at most once on average.
    if (this.#head * 2 >= this.#ready.length) {
      this.#ready = this.#ready.slice(this.#head)
      this.#head = 0
    }
    const wantedSince = this.#wanted.get(key) ?? this.#clock.monotonic()
    this.#wanted.delete(key)
    this.#working.add(key)
    this.#hooks.onTaken?.(this.#clock.monotonic() - wantedSince)
    this.#hooks.onDepth?.(this.depth)
    return key
  }
}
