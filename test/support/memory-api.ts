import type { DeleteOptions, KubeClient, ListOptions, PatchOptions, WriteOptions } from '../../src/kube/client.ts'
import { KubeError, type KubeErrorCode } from '../../src/kube/errors.ts'
import { keyOf, refKey, type KubeObject, type ObjectRef, type Resource } from '../../src/kube/object.ts'
import type { Change, Informer } from '../../src/runtime/informer.ts'
import { IndexedStore, type IndexFunction } from '../../src/runtime/store.ts'
import { mergePatched } from './merge-patch.ts'

/** One request, as a fault sees it. */
export interface Call {
  readonly verb: 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete'
  readonly plural: string
  readonly name: string
  readonly subresource: string
  /** What was sent: the object, the patch, or nothing. */
  readonly body: unknown
}

/**
 * What goes wrong with a request: an error instead of doing it, or `lost`: it is done and its reply is lost. A function that
 * awaits something holds the request up; `undefined` lets it be.
 */
export type Fault = (call: Call) => KubeError | 'lost' | undefined | Promise<KubeError | 'lost' | undefined>

const statuses: Partial<Record<KubeErrorCode, number>> = {
  NotFound: 404,
  AlreadyExists: 409,
  Conflict: 409,
  Forbidden: 403,
  Invalid: 422,
  ServerError: 500,
}

export function kubeError(code: KubeErrorCode, message: string = code, causeReason?: string): KubeError {
  const causes = causeReason === undefined ? [] : [{ reason: causeReason }]
  return new KubeError(code, message, { status: statuses[code] ?? 0, causes })
}

type Stored = KubeObject & { spec?: unknown; status?: unknown }

/**
 * The API server's rules about names, versions and preconditions, in memory, for tests that need one exact interleaving of
 * writes and watch events. Everything else is tested against a real API server.
 */
export class MemoryApi implements KubeClient {
  readonly #objects = new Map<string, Map<string, Stored>>()
  readonly #informers = new Map<string, MemoryInformer<KubeObject>[]>()
  readonly #now: () => number
  #version = 0
  readonly calls: Call[] = []
  fault: Fault = () => undefined
  /** What another webhook makes of an object on its way in. */
  mutate: (object: Stored) => Stored = (object) => object

  constructor(now: () => number) {
    this.#now = now
  }

  /** A cache that has what is stored and follows the kind, at once or, while paused, when it is told to. */
  informer<T extends KubeObject>(
    resource: Resource<T>,
    indexes: Readonly<Record<string, IndexFunction<T>>> = {},
  ): MemoryInformer<T> {
    const informer = new MemoryInformer<T>(indexes)
    const list = this.#informers.get(resource.plural) ?? []
    this.#informers.set(resource.plural, [...list, informer as unknown as MemoryInformer<KubeObject>])
    for (const object of this.all(resource)) informer.receive({ kind: 'added', object })
    return informer
  }

  /** What is stored, not through a request. */
  all<T extends KubeObject>(resource: Resource<T>): T[] {
    return [...this.#kind(resource).values()] as unknown as T[]
  }

  /** How many requests of that sort were sent. */
  count(verb: Call['verb'], plural: string): number {
    return this.calls.filter((call) => call.verb === verb && call.plural === plural).length
  }

  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T> {
    return this.#request({ verb: 'get', resource, name: ref.name }, () => this.#find(resource, ref) as T)
  }

  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}) {
    return this.#request({ verb: 'list', resource, name: '' }, () => ({
      metadata: { resourceVersion: String(this.#version) },
      items: this.all(resource).filter(
        ({ metadata }) =>
          (!options.namespace || metadata.namespace === options.namespace) &&
          (options.labelSelector ?? '')
            .split(',')
            .filter(Boolean)
            .every((term) => metadata.labels?.[term.split('=')[0]!] === term.split('=')[1]),
      ),
    }))
  }

  watch(): Promise<never> {
    return Promise.reject(new Error('use informer()'))
  }

  create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const name = object.metadata.name ?? ''
    return this.#request({ verb: 'create', resource, name, body: object }, () => {
      if (this.#kind(resource).has(keyOf(object))) throw kubeError('AlreadyExists')
      const created = this.mutate(copy(object) as Stored)
      // Of equal length, so that UIDs sort as they were given.
      created.metadata.uid = `uid-${String(++this.#version).padStart(6, '0')}`
      created.metadata.generation = 1
      created.metadata.creationTimestamp = new Date(this.#now()).toISOString()
      return this.#store(resource, created) as T
    })
  }

  replace<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const name = object.metadata.name ?? ''
    return this.#request({ verb: 'replace', resource, name, body: object }, () => {
      const current = this.#find(resource, object.metadata as ObjectRef)
      check(current, object.metadata)
      return this.#store(resource, copy(object) as Stored) as T
    })
  }

  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: unknown,
    options: PatchOptions,
  ): Promise<T> {
    const call = { verb: 'patch', resource, name: ref.name, body: patch, options } as const
    return this.#request(call, () => {
      const current = this.#find(resource, ref)
      const asked = patch as { metadata?: KubeObject['metadata']; status?: unknown }
      check(current, asked.metadata ?? {})
      const { status, ...rest } = asked
      const part = options.subresource === 'status' ? { status } : rest
      const merged = copy(mergePatched(current, part))
      const isOtherSpec = JSON.stringify(merged.spec) !== JSON.stringify(current.spec)
      const generation = (current.metadata.generation ?? 0) + (isOtherSpec ? 1 : 0)
      return this.#store(resource, { ...merged, metadata: { ...merged.metadata, generation } }) as T
    })
  }

  delete(resource: Resource, ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    return this.#request({ verb: 'delete', resource, name: ref.name }, () => {
      const current = this.#find(resource, ref)
      check(current, options)
      if (current.metadata.finalizers?.length) {
        const deletionTimestamp = new Date(this.#now()).toISOString()
        this.#store(resource, { ...current, metadata: { ...current.metadata, deletionTimestamp } })
        return
      }
      this.#kind(resource).delete(keyOf(current))
      this.#version += 1
      this.#tell(resource, { kind: 'deleted', object: current })
    })
  }

  serverClockOffsetMs(): number {
    return 0
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #request<R>(
    call: { verb: Call['verb']; resource: Resource; name: string; body?: unknown; options?: WriteOptions },
    carryOut: () => R,
  ): Promise<R> {
    const { verb, resource, name, body, options } = call
    const seen: Call = {
      verb,
      plural: resource.plural,
      name,
      subresource: options?.subresource ?? '',
      body: copy(body),
    }
    this.calls.push(seen)
    const fault = await this.fault(seen)
    if (fault instanceof KubeError) throw fault
    const result = carryOut()
    if (fault === 'lost') throw kubeError('OutcomeUnknown')
    return result
  }

  #kind(resource: Resource): Map<string, Stored> {
    const known = this.#objects.get(resource.plural)
    if (known) return known
    const objects = new Map<string, Stored>()
    this.#objects.set(resource.plural, objects)
    return objects
  }

  #find(resource: Resource, ref: ObjectRef): Stored {
    const object = this.#kind(resource).get(refKey(ref))
    if (!object) throw kubeError('NotFound')
    return object
  }

  #store(resource: Resource, object: Stored): Stored {
    const resourceVersion = String(++this.#version)
    // Objects are shared between caches: whoever changes one is found out.
    const stored = freeze({ ...object, metadata: { ...object.metadata, resourceVersion } })
    const isNew = !this.#kind(resource).has(keyOf(stored))
    this.#kind(resource).set(keyOf(stored), stored)
    this.#tell(resource, { kind: isNew ? 'added' : 'updated', object: stored })
    return stored
  }

  #tell(resource: Resource, news: News<KubeObject>): void {
    for (const informer of this.#informers.get(resource.plural) ?? []) informer.receive(news)
  }
}

interface News<T> {
  readonly kind: 'added' | 'updated' | 'deleted'
  readonly object: T
}

/** A cache whose watch a test can hold up. */
export class MemoryInformer<T extends KubeObject> implements Informer<T> {
  readonly store: IndexedStore<T>
  readonly synced = Promise.resolve()
  readonly hasSynced = true
  readonly #handlers: ((change: Change<T>) => void)[] = []
  readonly #waiting: News<T>[] = []
  #isPaused = false

  constructor(indexes: Readonly<Record<string, IndexFunction<T>>>) {
    this.store = new IndexedStore(indexes)
  }

  onChange(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler)
    for (const object of this.store.values()) handler({ kind: 'added', object })
  }

  /** From now on news are kept back. */
  pause(): void {
    this.#isPaused = true
  }

  /** Delivers the oldest `count` of the news that are kept back; all of them by default. */
  deliver(count = Infinity): void {
    for (const news of this.#waiting.splice(0, count)) this.#apply(news)
  }

  resume(): void {
    this.#isPaused = false
    this.deliver()
  }

  receive(news: News<T>): void {
    if (this.#isPaused) this.#waiting.push(news)
    else this.#apply(news)
  }

  run(): Promise<void> {
    return Promise.resolve()
  }

  relist(): Promise<void> {
    return Promise.resolve()
  }

  #apply({ kind, object }: News<T>): void {
    const change = kind === 'deleted' ? this.store.delete(keyOf(object)) : this.store.set(object)
    if (change) for (const handler of this.#handlers) handler(change)
  }
}

function check(current: Stored, asked: { uid?: string | undefined; resourceVersion?: string | undefined }): void {
  const { uid, resourceVersion } = current.metadata
  if (asked.uid !== undefined && asked.uid !== uid) throw kubeError('Conflict')
  if (asked.resourceVersion !== undefined && asked.resourceVersion !== resourceVersion) throw kubeError('Conflict')
}

/** As it looks after a trip over the wire. */
function copy<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T)
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) freeze(member)
  }
  return value
}
