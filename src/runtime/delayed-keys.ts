import type { Clock, Timer } from './clock.ts'

interface Entry {
  readonly key: string
  dueMs: number
  position: number
}

/**
 * Keys that become due at a moment each: a binary heap behind a single timer, so that ten thousand keys waiting for
 * days cost one timer. A key waits once; the earliest moment asked for wins.
 */
export class DelayedKeys {
  readonly #clock: Clock
  readonly #onDue: (key: string) => void
  readonly #entries = new Map<string, Entry>()
  readonly #heap: Entry[] = []
  #timer: { readonly dueMs: number; readonly handle: Timer } | undefined

  constructor(clock: Clock, onDue: (key: string) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  get size(): number {
    return this.#heap.length
  }

  /** Calls `onDue(key)` after `delayMs`, or earlier if that was already arranged. */
  add(key: string, delayMs: number): void {
    const dueMs = this.#clock.monotonic() + delayMs
    const waiting = this.#entries.get(key)
    if (waiting === undefined) {
      const entry = { key, dueMs, position: this.#heap.length }
      this.#entries.set(key, entry)
      this.#heap.push(entry)
      this.#rise(entry)
    } else if (dueMs < waiting.dueMs) {
      waiting.dueMs = dueMs
      this.#rise(waiting)
    }
    this.#arm()
  }

  /** Forgets every key and the timer. */
  clear(): void {
    this.#entries.clear()
    this.#heap.length = 0
    this.#arm()
  }

  /** Sets the timer for the earliest key, unless it is set for it already. */
  #arm(): void {
    const first = this.#heap[0]
    if (first?.dueMs === this.#timer?.dueMs) return
    this.#timer?.handle.cancel()
    this.#timer =
      first === undefined
        ? undefined
        : {
            dueMs: first.dueMs,
            handle: this.#clock.setTimer(() => this.#fire(), first.dueMs - this.#clock.monotonic()),
          }
  }

  #fire(): void {
    this.#timer = undefined
    const nowMs = this.#clock.monotonic()
    for (let first = this.#heap[0]; first !== undefined && first.dueMs <= nowMs; first = this.#heap[0]) {
      this.#removeFirst(first)
      this.#onDue(first.key)
    }
    this.#arm()
  }

  #removeFirst(first: Entry): void {
    this.#entries.delete(first.key)
    const last = this.#heap.pop()
    if (last === undefined || last === first) return
    this.#place(last, 0)
    this.#sink(last)
  }

  #rise(entry: Entry): void {
    while (entry.position > 0) {
      const parent = this.#heap[(entry.position - 1) >> 1]
      if (parent === undefined || parent.dueMs <= entry.dueMs) return
      this.#swap(entry, parent)
    }
  }

  #sink(entry: Entry): void {
    for (;;) {
      const left = this.#heap[2 * entry.position + 1]
      const right = this.#heap[2 * entry.position + 2]
      const child = right !== undefined && left !== undefined && right.dueMs < left.dueMs ? right : left
      if (child === undefined || child.dueMs >= entry.dueMs) return
      this.#swap(entry, child)
    }
  }

  #swap(a: Entry, b: Entry): void {
    const positionOfA = a.position
    this.#place(a, b.position)
    this.#place(b, positionOfA)
  }

  #place(entry: Entry, position: number): void {
    entry.position = position
    this.#heap[position] = entry
  }
}
