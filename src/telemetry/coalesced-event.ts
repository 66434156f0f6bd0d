import { createHash } from 'node:crypto'
import type { Event } from '../api/core.ts'
import type { KubeObject } from '../kube/object.ts'

export type EventType = 'Normal' | 'Warning'

/** What newer servers accept in a message. */
const maxMessageLength = 1_024
const maxNameLength = 253

/** One thing that happened to one object, once or more often. */
export class CoalescedEvent {
  readonly namespace: string
  /** Follows from the content, so that other replicas, and this one after a restart, find the same Event. */
  readonly name: string
  readonly reason: string
  readonly #type: EventType
  readonly #message: string
  readonly #involvedObject: Event['involvedObject']
  readonly #firstAt: number
  #lastAt: number
  #count = 0
  /** What of the count the server knows. */
  #acknowledged = 0
  /** What the server counted before this process did; undefined while it is not known to have the Event. */
  countBefore: number | undefined
  /** When it may be written next, by the monotonic clock. */
  writableAt: number
  failedAttempts = 0

  constructor(key: string, object: KubeObject, type: EventType, reason: string, message: string, times: CreationTimes) {
    const { namespace, name = '', uid } = object.metadata
    this.namespace = namespace ?? 'default'
    this.name = `${name.slice(0, maxNameLength - key.length - 1)}.${key}`
    this.reason = reason
    this.#type = type
    this.#message = message.length > maxMessageLength ? `${message.slice(0, maxMessageLength - 1)}…` : message
    // Not the object itself: it may be large, and gone from the caches by the time of writing.
    this.#involvedObject = {
      ...(object.apiVersion !== undefined && { apiVersion: object.apiVersion }),
      ...(object.kind !== undefined && { kind: object.kind }),
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      name,
    }
    this.#firstAt = times.now
    this.#lastAt = times.now
    this.writableAt = times.writableAt
  }

  /** The same for the same (object, type, reason, message). */
  static keyOf(object: KubeObject, type: EventType, reason: string, message: string): string {
    const { namespace, name, uid } = object.metadata
    const content = JSON.stringify([uid ?? [object.kind, namespace, name], type, reason, message])
    return createHash('sha256').update(content).digest('hex').slice(0, 16)
  }

  get count(): number {
    return this.#count
  }

  get isOutstanding(): boolean {
    return this.#count > this.#acknowledged
  }

  happened(now: number): void {
    this.#count += 1
    this.#lastAt = now
  }

  /** The first `count` occurrences are written, or never will be. */
  settle(count: number): void {
    this.#acknowledged = count
    this.failedAttempts = 0
  }

  toObject(component: string): Event {
    return {
      metadata: { namespace: this.namespace, name: this.name },
      involvedObject: this.#involvedObject,
      type: this.#type,
      reason: this.reason,
      message: this.#message,
      count: this.#count,
      firstTimestamp: timestamp(this.#firstAt),
      lastTimestamp: timestamp(this.#lastAt),
      source: { component },
    }
  }

  /** The merge patch that brings the server's Event up to date. */
  toPatch(): Pick<Event, 'count' | 'lastTimestamp'> {
    return { count: (this.countBefore ?? 0) + this.#count, lastTimestamp: timestamp(this.#lastAt) }
  }
}

export interface CreationTimes {
  /** Milliseconds since the epoch. */
  now: number
  /** By the monotonic clock. */
  writableAt: number
}

/** Events count whole seconds. */
function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
