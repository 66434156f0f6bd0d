import type { KubeObject, ObjectList, ObjectRef, Resource } from './object.ts'

export interface ListOptions {
  /** Absent: all namespaces. */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  limit?: number
  continue?: string
  /** `0` allows the server's cache; absent is a quorum read. */
  resourceVersion?: string
  signal?: AbortSignal
}

export interface WatchOptions {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  resourceVersion: string
  /** How long the server keeps the watch open. */
  timeoutSeconds?: number
  signal: AbortSignal
}

export type WatchEvent<T extends KubeObject> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T }
  | { type: 'BOOKMARK'; object: KubeObject }
  | { type: 'ERROR'; object: { code?: number; reason?: string; message?: string } }

export interface WriteOptions {
  dryRun?: boolean
  fieldManager?: string
  /** Sent as `fieldValidation`; servers before 1.25 ignore it. */
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore'
  subresource?: 'status' | 'scale'
  /** Ends the request; default 3 s for writes, so that a deposed leader's write cannot linger. */
  timeoutMs?: number
  signal?: AbortSignal
}

export interface PatchOptions extends WriteOptions {
  type: 'merge' | 'json' | 'apply'
  /** Server-side apply only: take over fields that another manager owns. */
  force?: boolean
}

export interface DeleteOptions {
  /** Preconditions: a mismatch is a Conflict. Every controller delete carries them. */
  uid?: string
  resourceVersion?: string
  propagation?: 'Background' | 'Foreground' | 'Orphan'
  gracePeriodSeconds?: number
  timeoutMs?: number
  signal?: AbortSignal
}

/**
 * The Kubernetes REST API. Every method rejects with a `KubeError`; a write whose reply was lost rejects with the
 * code `OutcomeUnknown`, one that certainly never arrived with `Unreachable`.
 */
export interface KubeClient {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: { signal?: AbortSignal }): Promise<T>
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<ObjectList<T>>
  /** Opens a watch; the iterator ends when the server closes it and throws a `KubeError` when it breaks. */
  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): Promise<AsyncIterable<WatchEvent<T>>>
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>
  replace<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>
  /** `patch` is a merge patch, a JSON Patch array, or an apply configuration, as `options.type` says. */
  patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, patch: unknown, options: PatchOptions): Promise<T>
  delete(resource: Resource, ref: ObjectRef, options?: DeleteOptions): Promise<void>
  /** Milliseconds to add to the local clock to get the API server's, from its Date header; 0 until known. */
  serverClockOffsetMs(): number
  /** Closes every connection; requests under way fail. */
  close(): Promise<void>
}
