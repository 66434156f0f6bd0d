import { keyOf, type KubeObject } from '../kube/object.ts'

/** One step in the life of a cached object. */
export type Change<T extends KubeObject> =
  | { readonly kind: 'added'; readonly object: T }
  | { readonly kind: 'updated'; readonly object: T; readonly previous: T }
  | { readonly kind: 'deleted'; readonly object: T }

/** Derives the values under which an object is filed in one index. */
export type IndexFunction<T extends KubeObject> = (object: T) => readonly string[]

/** Read side of an indexed cache. Objects are shared: never change one (tests freeze them). */
export interface ReadStore<T extends KubeObject> {
  /** By `namespace/name`, or `name` for cluster-scoped kinds. */
  get(key: string): T | undefined
  /** Objects filed under `value` in the index `index`; throws on an index that was never declared. */
  indexed(index: string, value: string): readonly T[]
  values(): Iterable<T>
  readonly size: number
}

interface Entry<T> {
  readonly object: T
  /** What the object is filed under, remembered so that taking it out never calls an index function again. */
  readonly filedUnder: ReadonlyMap<Index<T>, readonly string[]>
}

type Index<T> = Map<string, Map<string, T>>

/** Called when an index function throws; the object is then filed nowhere in that index. */
export type IndexErrorHandler = (error: unknown, index: string, key: string) => void

/** Objects by key, with indexes that are never behind the objects. */
export class IndexedStore<T extends KubeObject> implements ReadStore<T> {
  readonly #entries = new Map<string, Entry<T>>()
  readonly #indexes: ReadonlyMap<string, { readonly files: Index<T>; readonly valuesOf: IndexFunction<T> }>
  readonly #onIndexError: IndexErrorHandler

  constructor(indexes: Readonly<Record<string, IndexFunction<T>>> = {}, onIndexError: IndexErrorHandler = rethrow) {
    this.#indexes = new Map(Object.entries(indexes).map(([name, valuesOf]) => [name, { files: new Map(), valuesOf }]))
    this.#onIndexError = onIndexError
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)?.object
  }

  indexed(index: string, value: string): readonly T[] {
    const declared = this.#indexes.get(index)
    if (declared === undefined) throw new Error(`no index ${index} was declared for this store`)
    const filed = declared.files.get(value)
    return filed === undefined ? [] : [...filed.values()]
  }

  *values(): Iterable<T> {
    for (const entry of this.#entries.values()) yield entry.object
  }

  keys(): Iterable<string> {
    return this.#entries.keys()
  }

  /** Puts the object in the place of the one with its key, if any. */
  set(object: T): Change<T> {
    const key = keyOf(object)
    // Everything that can throw comes before the first change.
    const filedUnder = this.#valuesOf(key, object)
    const previous = this.#entries.get(key)
    if (previous !== undefined) unfile(key, previous)
    this.#entries.set(key, { object, filedUnder })
    for (const [index, values] of filedUnder) {
      for (const value of values) {
        const files = index.get(value)
        if (files === undefined) index.set(value, new Map([[key, object]]))
        else files.set(key, object)
      }
    }
    return previous === undefined ? { kind: 'added', object } : { kind: 'updated', object, previous: previous.object }
  }

  /** Takes the object out; undefined when there is none with this key. */
  delete(key: string): Change<T> | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    unfile(key, entry)
    return { kind: 'deleted', object: entry.object }
  }

  #valuesOf(key: string, object: T): ReadonlyMap<Index<T>, readonly string[]> {
    const filedUnder = new Map<Index<T>, readonly string[]>()
    for (const [name, { files, valuesOf }] of this.#indexes) {
      try {
        filedUnder.set(files, valuesOf(object))
      } catch (error) {
        this.#onIndexError(error, name, key)
      }
    }
    return filedUnder
  }
}

function unfile<T>(key: string, entry: Entry<T>): void {
  for (const [index, values] of entry.filedUnder) {
    for (const value of values) {
      const files = index.get(value)
      files?.delete(key)
      if (files?.size === 0) index.delete(value)
    }
  }
}

function rethrow(error: unknown): never {
  throw error
}
