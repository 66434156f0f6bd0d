import { default as jsonPatch } from 'fast-json-patch'
import type { DeleteOptions, KubeClient, WatchEvent } from '../../src/kube/client.ts'
import { KubeError } from '../../src/kube/errors.ts'
import { refKey, type KubeObject, type ObjectRef, type Resource } from '../../src/kube/object.ts'

const fail = (code: 'NotFound' | 'AlreadyExists' | 'Conflict', status: number) =>
  new KubeError(code, code, { status, reason: code })

/**
 * The API server as far as certificates need it: names are unique, every write has a resourceVersion of its own, and a
 * write against an old one is a conflict. Each call yields first, so that callers interleave as they would.
 */
export class MemoryClient implements KubeClient {
  readonly objects = new Map<string, KubeObject>()
  /** `verb plural/name` of every write that was carried out. */
  readonly writes: string[] = []
  /** Runs before a call is carried out; what it throws is the call's outcome. */
  before: (verb: string, path: string) => void | Promise<void> = () => undefined
  readonly #watchers = new Set<() => void>()
  #version = 0

  /** Puts an object there as somebody else would, without a check. */
  put<T extends KubeObject>(resource: Resource<T>, object: T): T {
    const stored = structuredClone(object)
    stored.metadata = {
      uid: `uid-${++this.#version}`,
      ...stored.metadata,
      resourceVersion: String(this.#version),
    }
    this.objects.set(pathOf(resource, object.metadata as ObjectRef), stored)
    for (const notify of this.#watchers) notify()
    return structuredClone(stored)
  }

  read<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): T | undefined {
    return structuredClone(this.objects.get(pathOf(resource, ref))) as T | undefined
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T> {
    await this.before('get', pathOf(resource, ref))
    const found = this.read(resource, ref)
    if (!found) throw fail('NotFound', 404)
    return found
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const path = pathOf(resource, object.metadata as ObjectRef)
    await this.before('create', path)
    if (this.objects.has(path)) throw fail('AlreadyExists', 409)
    this.writes.push(`create ${path}`)
    return this.put(resource, object)
  }

  async replace<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const path = pathOf(resource, object.metadata as ObjectRef)
    await this.before('replace', path)
    const found = this.objects.get(path)
    if (!found) throw fail('NotFound', 404)
    if (found.metadata.resourceVersion !== object.metadata.resourceVersion) throw fail('Conflict', 409)
    this.writes.push(`replace ${path}`)
    return this.put(resource, object)
  }

  async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, patch: unknown): Promise<T> {
    const path = pathOf(resource, ref)
    await this.before('patch', path)
    const found = this.read(resource, ref)
    if (!found) throw fail('NotFound', 404)
    const { resourceVersion } = found.metadata
    const changed = jsonPatch.applyPatch(found, patch as []).newDocument
    if (changed.metadata.resourceVersion !== resourceVersion) throw fail('Conflict', 409)
    this.writes.push(`patch ${path}`)
    return this.put(resource, changed)
  }

  async delete(resource: Resource, ref: ObjectRef, { uid, resourceVersion }: DeleteOptions = {}): Promise<void> {
    const path = pathOf(resource, ref)
    await this.before('delete', path)
    const found = this.objects.get(path)
    if (!found) throw fail('NotFound', 404)
    if (uid !== found.metadata.uid || resourceVersion !== found.metadata.resourceVersion) throw fail('Conflict', 409)
    this.writes.push(`delete ${path}`)
    this.objects.delete(path)
  }

  async list<T extends KubeObject>(): Promise<{ metadata: { resourceVersion: string }; items: T[] }> {
    await this.before('list', '')
    return { metadata: { resourceVersion: String(this.#version) }, items: [] }
  }

  async watch<T extends KubeObject>(
    _resource: Resource<T>,
    { signal }: { signal: AbortSignal },
  ): Promise<AsyncIterable<WatchEvent<T>>> {
    await this.before('watch', '')
    return this.#events(signal)
  }

  async *#events<T extends KubeObject>(signal: AbortSignal): AsyncIterable<WatchEvent<T>> {
    while (!signal.aborted) {
      const changed = Promise.withResolvers<void>()
      this.#watchers.add(changed.resolve)
      signal.addEventListener('abort', () => changed.resolve(), { once: true })
      await changed.promise
      this.#watchers.delete(changed.resolve)
      if (!signal.aborted) yield { type: 'MODIFIED', object: { metadata: {} } as T }
    }
  }

  serverClockOffsetMs(): number {
    return 0
  }

  async close(): Promise<void> {}
}

function pathOf({ plural }: Resource, ref: ObjectRef): string {
  return `${plural}/${refKey(ref)}`
}
