import type { KubeObject } from '../kube/object.ts'
import type { Change, ReadStore } from './store.ts'

export type { Change }

/** A cache of one resource that follows the API server. */
export interface Informer<T extends KubeObject> {
  readonly store: ReadStore<T>
  /** Resolves after the first full list. */
  readonly synced: Promise<void>
  readonly hasSynced: boolean
  /**
   * Called after the store and its indexes are updated, with what is stored already as added first. An exception in a
   * handler is logged and counted, never fatal.
   */
  onChange(handler: (change: Change<T>) => void): void
  /** Follows the resource until `signal` ends. Never rejects. */
  run(signal: AbortSignal): Promise<void>
  /**
   * Lists again with a quorum read that starts after this call and resolves once the store and the handlers have it
   * (used on acquiring leadership). Tried again until it succeeds; rejects when `signal` or the run ends before.
   */
  relist(signal?: AbortSignal): Promise<void>
}
