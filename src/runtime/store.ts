import type { KubeObject } from '../kube/object.ts'

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
