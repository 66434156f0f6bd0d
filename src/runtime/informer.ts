import type { KubeObject } from '../kube/object.ts'
import type { ReadStore } from './store.ts'

export type Change<T extends KubeObject> =
  | { readonly kind: 'added'; readonly object: T }
  | { readonly kind: 'updated'; readonly object: T; readonly previous: T }
  | { readonly kind: 'deleted'; readonly object: T }

/** A cache of one resource that follows the API server. */
export interface Informer<T extends KubeObject> {
  readonly store: ReadStore<T>
  /** Resolves after the first full list. */
  readonly synced: Promise<void>
  readonly hasSynced: boolean
  /** Called after the store and its indexes are updated. An exception in a handler is logged and counted, never fatal. */
  onChange(handler: (change: Change<T>) => void): void
  /** Follows the resource until `signal` ends. Never rejects. */
  run(signal: AbortSignal): Promise<void>
  /** Lists again with a quorum read and resolves once the store reflects it (used on acquiring leadership). */
  relist(signal?: AbortSignal): Promise<void>
}
