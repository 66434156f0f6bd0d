import type { KubeClient, ListOptions, WatchEvent, WatchOptions } from '../../src/kube/client.ts'
import { KubeError } from '../../src/kube/errors.ts'
import {
  keyOf,
  type KubeObject,
  type ObjectList,
  type ObjectRef,
  refKey,
  type Resource,
} from '../../src/kube/object.ts'

export interface Thing extends KubeObject {
  spec: { value: number }
}

export const things: Resource<Thing> = {
  group: 'test.dev',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  namespaced: true,
}

type ThingEvent = WatchEvent<Thing>

/** An error as the REST client throws it. */
export function kubeError(code: KubeError['code'], status: number, retryAfterMs?: number): KubeError {
  return new KubeError(code, code, { status, ...(retryAfterMs !== undefined && { retryAfterMs }) })
}

/** One watch under way: events are pushed in, the reflector pulls them out. */
export class ScriptedWatch implements AsyncIterable<ThingEvent> {
  readonly options: WatchOptions
  readonly #queue: ThingEvent[] = []
  #end: { error?: unknown } | undefined
  #wake = (): void => {}
  isOpen = true

  constructor(options: WatchOptions) {
    this.options = options
    options.signal.addEventListener('abort', () => this.break(kubeError('Aborted', 0)), { once: true })
  }

  send(event: ThingEvent): void {
    if (this.#end !== undefined) return
    this.#queue.push(event)
    this.#wake()
  }

  /** The server closes the watch after what it has sent. */
  close(): void {
    this.#end ??= {}
    this.#wake()
  }

  /** The connection breaks; what was sent and not yet read is lost. */
  break(error: unknown): void {
    if (!this.isOpen) return
    this.#queue.length = 0
    this.#end = { error }
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ThingEvent> {
    try {
      for (;;) {
        const event = this.#queue.shift()
        if (event !== undefined) yield event
        else if (this.#end === undefined) await new Promise<void>((resolve) => (this.#wake = resolve))
        else if ('error' in this.#end) throw this.#end.error
        else return
      }
    } finally {
      this.isOpen = false
    }
  }
}

/**
 * The list and watch half of an API server in memory, with versions, paging, compaction, and faults on demand. It is
 * the other end of a conversation for the reflector's tests, no stand-in for a real server.
 */
export class ScriptedApi implements KubeClient {
  readonly objects = new Map<string, Thing>()
  readonly lists: ListOptions[] = []
  readonly watches: ScriptedWatch[] = []
  /** Thrown by the next lists and watches, first come first served. */
  readonly listFaults: unknown[] = []
  readonly watchFaults: unknown[] = []
  pageSize = Infinity
  /** Called before a list is answered; a promise holds the answer back. */
  beforeList: (options: ListOptions) => void | Promise<void> = () => {}
  #history: { version: number; event: ThingEvent }[] = []
  /** What the pages of a list are cut from, by version. */
  readonly #snapshots = new Map<string, readonly Thing[]>()
  #version = 100
  #compactedVersion = 100
  #uids = 0

  get version(): string {
    return String(this.#version)
  }

  get openWatches(): readonly ScriptedWatch[] {
    return this.watches.filter((watch) => watch.isOpen)
  }

  /** The newest watch. */
  get lastWatch(): ScriptedWatch {
    const watch = this.watches.at(-1)
    if (watch === undefined) throw new Error('no watch was opened')
    return watch
  }

  /** Creates or updates the thing `name`. */
  put(name: string, value = 0): Thing {
    const known = this.objects.get(`ns/${name}`)
    const uid = known?.metadata.uid ?? `uid-${(this.#uids += 1)}`
    return this.#record(known === undefined ? 'ADDED' : 'MODIFIED', {
      metadata: { namespace: 'ns', name, uid, resourceVersion: this.#nextVersion(), managedFields: [{ manager: 'm' }] },
      spec: { value },
    })
  }

  remove(name: string): void {
    const known = this.objects.get(`ns/${name}`)
    if (known === undefined) return
    const metadata = { ...known.metadata, resourceVersion: this.#nextVersion() }
    this.#record('DELETED', { ...known, metadata })
  }

  /** Forgets the past: whoever watches from before now is told 410. */
  compact(): void {
    this.#history = []
    this.#compactedVersion = this.#version
  }

  /** Sends what is remembered of the past once more. */
  replay(): void {
    for (const watch of this.openWatches) for (const { event } of this.#history) watch.send(structuredClone(event))
  }

  bookmark(): void {
    const metadata = { resourceVersion: this.version }
    for (const watch of this.openWatches) watch.send({ type: 'BOOKMARK', object: { metadata } })
  }

  async list<T extends KubeObject>(_: Resource<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    this.lists.push(options)
    await this.beforeList(options)
    options.signal?.throwIfAborted()
    if (this.listFaults.length > 0) throw this.listFaults.shift()
    // The token is "version,offset": pages after a compaction are gone, as on the real server.
    const [version = this.version, offset = '0'] = options.continue?.split(',') ?? []
    if (Number(version) < this.#compactedVersion) throw kubeError('Expired', 410)
    if (options.continue === undefined) this.#snapshots.set(version, [...this.objects.values()])
    const all = this.#snapshots.get(version) ?? []
    const end = Number(offset) + Math.min(this.pageSize, options.limit ?? Infinity)
    return {
      metadata: { resourceVersion: version, ...(end < all.length && { continue: `${version},${end}` }) },
      items: structuredClone(all.slice(Number(offset), end)) as KubeObject[] as T[],
    }
  }

  async watch<T extends KubeObject>(_: Resource<T>, options: WatchOptions): Promise<AsyncIterable<WatchEvent<T>>> {
    await Promise.resolve()
    if (this.watchFaults.length > 0) throw this.watchFaults.shift()
    if (Number(options.resourceVersion) < this.#compactedVersion) throw kubeError('Expired', 410)
    const watch = new ScriptedWatch(options)
    this.watches.push(watch)
    for (const { version, event } of this.#history) {
      if (version > Number(options.resourceVersion)) watch.send(structuredClone(event))
    }
    return watch as AsyncIterable<WatchEvent<KubeObject>> as AsyncIterable<WatchEvent<T>>
  }

  get<T extends KubeObject>(_: Resource<T>, ref: ObjectRef): Promise<T> {
    return Promise.reject(new Error(`the reflector got ${refKey(ref)}`))
  }

  create = unexpected
  replace = unexpected
  patch = unexpected
  delete = unexpected
  serverClockOffsetMs = (): number => 0
  close = (): Promise<void> => Promise.resolve()

  #nextVersion(): string {
    this.#version += 1
    return this.version
  }

  #record(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Thing): Thing {
    if (type === 'DELETED') this.objects.delete(keyOf(object))
    else this.objects.set(keyOf(object), object)
    const event = { type, object }
    this.#history.push({ version: this.#version, event })
    for (const watch of this.openWatches) watch.send(structuredClone(event))
    return object
  }
}

function unexpected(): Promise<never> {
  return Promise.reject(new Error('the reflector wrote'))
}
