import type { Logger } from 'pino'
import type { WatchEvent } from '../kube/client.ts'
import { keyOf, type KubeObject, type Resource } from '../kube/object.ts'
import { watchError } from './restart-reason.ts'
import { type Change, IndexedStore, type IndexFunction } from './store.ts'

export interface ReplicaOptions<T extends KubeObject> {
  readonly resource: Resource<T>
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>
  readonly log: Logger
  /** Freezes every object deeply, so that a test sees whoever changes one. */
  readonly freeze?: boolean
  /** Counts exceptions thrown by handlers and index functions. */
  readonly onHandlerError?: () => void
}

type ObjectEvent<T extends KubeObject> = Extract<WatchEvent<T>, { type: 'ADDED' | 'MODIFIED' | 'DELETED' }>

/**
 * A local copy of one resource, kept true by the lists and events it is fed. It does no I/O and never waits: each list
 * or event is applied as a whole, to the store and its indexes first, then to the handlers.
 */
export class Replica<T extends KubeObject> {
  readonly store: IndexedStore<T>
  readonly #resource: Resource<T>
  readonly #log: Logger
  readonly #freeze: boolean
  readonly #onHandlerError: () => void
  readonly #handlers: ((change: Change<T>) => void)[] = []
  #version: string | undefined

  constructor({ resource, indexes = {}, log, freeze = false, onHandlerError = () => {} }: ReplicaOptions<T>) {
    this.#resource = resource
    this.#log = log
    this.#freeze = freeze
    this.#onHandlerError = onHandlerError
    this.store = new IndexedStore(indexes, (err, index, key) => {
      log.error({ resource: resource.plural, index, key, err }, 'index function failed')
      onHandlerError()
    })
  }

  /** The resource version up to which everything is known; undefined before the first list. */
  get version(): string | undefined {
    return this.#version
  }

  /** Adds a handler; it is told of what is stored already. */
  onChange(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler)
    for (const object of this.store.values()) this.#tell(handler, { kind: 'added', object })
  }

  /**
   * Takes over a full list. It is the truth even where its versions are lower (a restored etcd): a quorum read that began
   * after the last applied event cannot be behind it. What it does not hold is reported as deleted.
   */
  applyList(items: readonly T[], version: string | undefined): void {
    const listed = new Map(items.map((item) => [keyOf(item), this.#takeIn(item)]))
    const changes: Change<T>[] = []
    for (const key of [...this.store.keys()]) {
      const deleted = listed.has(key) ? undefined : this.store.delete(key)
      if (deleted !== undefined) changes.push(deleted)
    }
    for (const [key, object] of listed) {
      const known = this.store.get(key)
      if (known === undefined || !isSameVersion(object, known)) changes.push(...this.#put(key, object))
    }
    this.#version = version
    for (const change of changes) this.#tellAll(change)
  }

  /**
   * Applies a watch event. One that is older than what the store knows already changes nothing.
   * @throws KubeError what an ERROR event says
   */
  apply(event: WatchEvent<T>): void {
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED':
        return this.#applyObject(event)
      case 'BOOKMARK':
        // Nothing happened to the resource up to this version.
        return this.#moveTo(event.object.metadata.resourceVersion)
      case 'ERROR':
        throw watchError(event.object)
      default:
        return event satisfies never
    }
  }

  #applyObject(event: ObjectEvent<T>): void {
    const object = this.#takeIn(event.object)
    const key = keyOf(object)
    const known = this.store.get(key)
    // A stale event about an object that is not stored would bring a deleted one back: it is compared with how far
    // this copy has come as a whole.
    const knownVersion = known === undefined ? this.#version : known.metadata.resourceVersion
    const age = compareVersions(object.metadata.resourceVersion, knownVersion)
    const changes = event.type === 'DELETED' ? this.#afterDelete(key, object, age) : this.#afterPut(key, object, age)
    this.#moveTo(object.metadata.resourceVersion)
    for (const change of changes) this.#tellAll(change)
  }

  #afterPut(key: string, object: T, age: number | undefined): readonly Change<T>[] {
    return age !== undefined && age <= 0 ? [] : this.#put(key, object)
  }

  #afterDelete(key: string, object: T, age: number | undefined): readonly Change<T>[] {
    // The version of a delete can equal the stored one: old servers send the last state as it was.
    if (age !== undefined && age < 0) return []
    const deleted = this.store.delete(key)
    if (deleted === undefined) return []
    // The event has the final state. It is another object's when a delete and a create went unseen in between.
    return [isSameObject(object, deleted.object) ? { kind: 'deleted', object } : deleted]
  }

  /** Stores the object; one of the same name but another UID was deleted and created anew, and is reported so. */
  #put(key: string, object: T): readonly Change<T>[] {
    const known = this.store.get(key)
    if (known === undefined || isSameObject(object, known)) return [this.store.set(object)]
    this.store.set(object)
    return [
      { kind: 'deleted', object: known },
      { kind: 'added', object },
    ]
  }

  #moveTo(version: string | undefined): void {
    const age = compareVersions(version, this.#version)
    if (version !== undefined && version !== '' && (age === undefined || age > 0)) this.#version = version
  }

  /** The object as it is stored: without managedFields, which are half its size and read by nobody. */
  #takeIn(object: T): T {
    const { managedFields: _, ...metadata } = object.metadata
    const taken = { ...object, metadata }
    if (this.#freeze) freezeDeeply(taken)
    return taken
  }

  #tellAll(change: Change<T>): void {
    for (const handler of this.#handlers) this.#tell(handler, change)
  }

  #tell(handler: (change: Change<T>) => void, change: Change<T>): void {
    try {
      handler(change)
    } catch (err) {
      this.#log.error(
        { resource: this.#resource.plural, key: keyOf(change.object), change: change.kind, err },
        'informer handler failed',
      )
      this.#onHandlerError()
    }
  }
}

function isSameObject(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.uid === b.metadata.uid
}

function isSameVersion(a: KubeObject, b: KubeObject): boolean {
  return (
    isSameObject(a, b) &&
    a.metadata.resourceVersion !== undefined &&
    a.metadata.resourceVersion === b.metadata.resourceVersion
  )
}

/** Negative when `a` is older than `b`, 0 when equal; undefined when they cannot be compared as numbers. */
function compareVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === undefined || b === undefined || !/^\d+$/.test(a) || !/^\d+$/.test(b)) return undefined
  // Compared without converting: etcd's revisions are 64 bits wide.
  const difference = BigInt(a) - BigInt(b)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

function freezeDeeply(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const part of Object.values(value)) freezeDeeply(part)
}
