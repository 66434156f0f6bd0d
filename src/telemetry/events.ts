import type { Logger } from 'pino'
import { events } from '../api/core.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import type { KubeError } from '../kube/errors.ts'
import type { KubeObject } from '../kube/object.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import { CoalescedEvent } from './coalesced-event.ts'
import type { EventType } from './coalesced-event.ts'

export type { EventType } from './coalesced-event.ts'

export interface EventRecorder {
  /**
   * Notes that something happened to `object`. Returns at once and never throws: the Event is written later, after the
   * work it tells of, and repeats of the same (object, type, reason, message) only raise a count.
   */
  record(object: KubeObject, type: EventType, reason: string, message: string): void
  /**
   * Writes what is outstanding, each Event tried once, until the API server stops answering. For the end of the
   * process: nothing is tried again by itself afterwards. Never rejects.
   */
  flush(): Promise<void>
}

export interface EventRecorderOptions {
  client: KubeClient
  /** Shown as the Event's source. */
  component: string
  clock: Clock
  log: Logger
}

/**
 * Between batches, and before the first. An Event costs the API server as much as a claim's own writes; this keeps a
 * burst of claims ahead of the Events about it.
 */
const batchIntervalMs = 500
/** Events written one after the other in a batch: with the interval, at most 20 a second. */
const batchSize = 10
/** Between two writes of the same Event. */
const repeatIntervalMs = 10_000
/** Events remembered, written or not; beyond it the longest unheard-of are forgotten, but never outstanding ones. */
const maxRemembered = 1_000
/** Attempts at one write, with 2, 4, 8 and 16 s between them. */
const maxAttempts = 5

/** See {@link EventRecorder}. At most a thousand different Events wait; what happens beyond that goes unrecorded. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new CoalescingRecorder(options)
}

class CoalescingRecorder implements EventRecorder {
  readonly #client: KubeClient
  readonly #component: string
  readonly #clock: Clock
  readonly #log: Logger
  /** In order of last mention. */
  readonly #events = new Map<string, CoalescedEvent>()
  /** The next batch; while one is being written, due in the past so that nothing overtakes it. */
  #nextBatch: { timer: Timer; dueAt: number } | undefined
  /** One write at a time, whoever asked for it. */
  #writing: Promise<void> = Promise.resolve()

  constructor(options: EventRecorderOptions) {
    this.#client = options.client
    this.#component = options.component
    this.#clock = options.clock
    this.#log = options.log
  }

  record(object: KubeObject, type: EventType, reason: string, message: string): void {
    const key = CoalescedEvent.keyOf(object, type, reason, message)
    const now = this.#clock.now()
    let event = this.#events.get(key)
    if (event) {
      this.#events.delete(key)
    } else {
      if (!this.#makeRoom()) return
      const writableAt = this.#clock.monotonic() + batchIntervalMs
      event = new CoalescedEvent(key, object, type, reason, message, { now, writableAt })
    }
    this.#events.set(key, event)
    event.happened(now)
    this.#scheduleBatch(event.writableAt)
  }

  async flush(): Promise<void> {
    await this.#write(this.#outstanding())
    this.#nextBatch?.timer.cancel()
    this.#nextBatch = undefined
  }

  #outstanding(): CoalescedEvent[] {
    return [...this.#events.values()].filter((event) => event.isOutstanding)
  }

  #makeRoom(): boolean {
    if (this.#events.size < maxRemembered) return true
    for (const [key, event] of this.#events) {
      if (event.isOutstanding) continue
      this.#events.delete(key)
      return true
    }
    return false
  }

  #scheduleBatch(writableAt: number): void {
    const now = this.#clock.monotonic()
    const dueAt = Math.max(writableAt, now + batchIntervalMs)
    if (this.#nextBatch && this.#nextBatch.dueAt <= dueAt) return
    this.#nextBatch?.timer.cancel()
    this.#nextBatch = { timer: this.#clock.setTimer(() => void this.#runBatch(), dueAt - now), dueAt }
  }

  async #runBatch(): Promise<void> {
    const now = this.#clock.monotonic()
    const due = this.#outstanding().filter((event) => event.writableAt <= now)
    await this.#write(due.slice(0, batchSize))
    // Only now: a slow server is not given the next batch before it has taken this one.
    this.#nextBatch = undefined
    const next = Math.min(...this.#outstanding().map((event) => event.writableAt))
    if (next !== Infinity) this.#scheduleBatch(next)
  }

  #write(batch: readonly CoalescedEvent[]): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeInTurn(batch))
    return this.#writing
  }

  /** Ends early when the server does not answer: the others would only wait for the same. */
  async #writeInTurn(batch: readonly CoalescedEvent[]): Promise<void> {
    for (const event of batch) {
      // An earlier batch may have had it too.
      if (!event.isOutstanding) continue
      const count = event.count
      try {
        await this.#writeOne(event)
        event.settle(count)
        event.writableAt = this.#clock.monotonic() + repeatIntervalMs
      } catch (error) {
        if (!this.#retryLater(event, error)) event.settle(count)
        if (isKubeError(error, 'Unreachable', 'OutcomeUnknown', 'TooManyRequests')) return
      }
    }
  }

  async #writeOne(event: CoalescedEvent): Promise<void> {
    if (event.countBefore === undefined) {
      try {
        await this.#client.create(events, event.toObject(this.#component))
        event.countBefore = 0
        return
      } catch (error) {
        if (!isKubeError(error, 'AlreadyExists')) throw error
        // Another process's. Two that count at once may lose counts to each other; an Event's count is a hint.
        event.countBefore = (await this.#client.get(events, event)).count ?? 0
      }
    }
    try {
      await this.#client.patch(events, event, event.toPatch(), { type: 'merge' })
    } catch (error) {
      if (!isKubeError(error, 'NotFound')) throw error
      // The server drops Events after an hour.
      event.countBefore = undefined
      await this.#client.create(events, event.toObject(this.#component))
      event.countBefore = 0
    }
  }

  /** False: these occurrences will not be written. */
  #retryLater(event: CoalescedEvent, error: unknown): boolean {
    // Nobody will read the Events of a namespace that goes or has gone.
    if (isKubeError(error, 'NotFound') || isNamespaceEnding(error)) return false
    event.failedAttempts += 1
    if (isTransient(error) && event.failedAttempts < maxAttempts) {
      const askedMs = error.retryAfterMs ?? 0
      event.writableAt = this.#clock.monotonic() + Math.max(askedMs, 1000 * 2 ** event.failedAttempts)
      return true
    }
    const { namespace, name, reason } = event
    this.#log.warn({ event: { namespace, name, reason }, error }, 'event not recorded')
    return false
  }
}

function isTransient(error: unknown): error is KubeError {
  return isKubeError(
    error,
    'Unreachable',
    'OutcomeUnknown',
    'TooManyRequests',
    'ServerError',
    // Made or changed by another process between two of our requests.
    'AlreadyExists',
    'Conflict',
  )
}

function isNamespaceEnding(error: unknown): boolean {
  return isKubeError(error, 'Forbidden') && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
}
