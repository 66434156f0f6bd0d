import type { Logger } from 'pino'
import type { KubeClient, ListOptions, WatchEvent } from '../kube/client.ts'
import { isKubeError, KubeError } from '../kube/errors.ts'
import type { KubeObject, ObjectList, Resource } from '../kube/object.ts'
import { Attempt } from './attempt.ts'
import { backoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import type { Change, Informer } from './informer.ts'
import { Replica } from './replica.ts'
import type { IndexFunction, ReadStore } from './store.ts'

/** Why a watch was opened anew or a list made again; few and fixed, so fit for a metric's label. */
export type RestartReason =
  'closed' | 'idle' | 'expired' | 'unauthorized' | 'throttled' | 'connection' | 'server-error' | 'error-event' | 'other'

export interface ReflectorOptions<T extends KubeObject> {
  readonly client: KubeClient
  readonly resource: Resource<T>
  /** Absent: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>
  readonly clock: Clock
  readonly log: Logger
  readonly onRestart?: (reason: RestartReason) => void
  /** Called for each exception that a handler or index function threw, after it was logged. */
  readonly onHandlerError?: () => void
  /** Jitter: a number in [0, 1). */
  readonly random?: () => number
  /** Freezes cached objects deeply (tests). */
  readonly freeze?: boolean
}

/** Objects per page of a list: client-go's page size. */
const pageSize = 500
/**
 * Silence after which a watch, or one page of a list, is taken for dead. The server sends a bookmark about each minute,
 * except on a resource that has never changed since the server started: there this costs one request in three minutes.
 */
const idleMs = 3 * 60_000
/** How long the server is asked to keep a watch open: spread, like client-go's, so that not all reopen together. */
const watchSeconds = { least: 300, spread: 300 }
/** A watch that lived this long was healthy: the next interruption counts as the first. */
const healthyMs = 10_000
const restartBackoff = { baseMs: 200, maxMs: 30_000 }

/** An ERROR event: the server gives up on a watch that it had accepted. */
class WatchError extends KubeError {}

/** How a list or a watch ended. */
type Ending =
  | { readonly kind: 'listed' }
  /** By ourselves: a stop or a wanted list. */
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'broken'; readonly reason: RestartReason; readonly error?: unknown }

interface Waiter {
  readonly resolve: () => void
  readonly reject: (reason: unknown) => void
}

/** A cache of one resource that follows the API server through whatever happens to the connection. */
export function createReflector<T extends KubeObject>(options: ReflectorOptions<T>): Informer<T> {
  return new Reflector(options)
}

class Reflector<T extends KubeObject> implements Informer<T> {
  readonly synced: Promise<void>
  readonly #options: ReflectorOptions<T>
  readonly #scope: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>
  readonly #random: () => number
  readonly #replica: Replica<T>
  readonly #synced = Promise.withResolvers<void>()
  #hasSynced = false
  #mustList = true
  /** Who waits for a list that starts after their call. */
  readonly #waiters = new Set<Waiter>()
  /** The watch or the pause that a wanted list cuts short. */
  #interruptible: Attempt | undefined

  constructor(options: ReflectorOptions<T>) {
    const { namespace, labelSelector, fieldSelector } = options
    this.#options = options
    this.#scope = {
      ...(namespace !== undefined && { namespace }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    }
    this.#random = options.random ?? Math.random
    this.#replica = new Replica(options)
    this.synced = this.#synced.promise
  }

  get store(): ReadStore<T> {
    return this.#replica.store
  }

  get hasSynced(): boolean {
    return this.#hasSynced
  }

  onChange(handler: (change: Change<T>) => void): void {
    this.#replica.onChange(handler)
  }

  relist(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error)
    this.#mustList = true
    this.#interruptible?.interrupt('interrupted')
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter)
        signal?.removeEventListener('abort', onAbort)
      }
      const onAbort = (): void => waiter.reject(signal?.reason)
      const waiter: Waiter = {
        resolve: () => (leave(), resolve()),
        reject: (reason) => (leave(), reject(reason)),
      }
      this.#waiters.add(waiter)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  async run(signal: AbortSignal): Promise<void> {
    let failures = 0
    // oxlint-disable no-await-in-loop -- one connection after the other
    while (!signal.aborted) {
      const startedMs = this.#options.clock.monotonic()
      const watching = !this.#mustList
      const ending = watching ? await this.#watch(signal) : await this.#list(signal)
      if (ending.kind !== 'broken' || signal.aborted) continue
      const wasHealthy = watching && this.#options.clock.monotonic() - startedMs >= healthyMs
      if (wasHealthy) failures = 0
      // The usual end of a long watch needs no pause, which would only make the cache late.
      const isUsual = wasHealthy && ending.error === undefined
      const delayMs = isUsual ? 0 : this.#delayMs(ending.error, failures)
      if (!isUsual) failures += 1
      this.#report(ending.reason, ending.error, delayMs)
      await this.#pause(delayMs, signal)
    }
    for (const waiter of this.#waiters) waiter.reject(signal.reason)
  }

  /** Lists everything and hands it to the replica. */
  async #list(signal: AbortSignal): Promise<Ending> {
    // Whoever asks from here on needs a list that starts later.
    this.#mustList = false
    const served = [...this.#waiters]
    const attempt = new Attempt(this.#options.clock, signal, idleMs)
    try {
      const { items, version } = await this.#readPages(attempt)
      if (attempt.interruption !== undefined) return this.#endingOf(attempt, undefined)
      this.#replica.applyList(items, version)
      this.#hasSynced = true
      this.#synced.resolve()
      for (const waiter of served) waiter.resolve()
      return { kind: 'listed' }
    } catch (error) {
      this.#mustList = true
      return this.#endingOf(attempt, error)
    } finally {
      attempt.release()
    }
  }

  async #readPages(attempt: Attempt): Promise<{ items: readonly T[]; version: string | undefined }> {
    const { client, resource } = this.#options
    const readPage = async (page: { limit?: number; continue?: string }): Promise<ObjectList<T>> => {
      const list = await client.list(resource, { ...this.#scope, ...page, signal: attempt.signal })
      attempt.heard()
      return list
    }
    const first = await readPage({ limit: pageSize })
    // All pages show the same moment; should they not, watching from the first one's repeats events and loses none.
    const version = first.metadata.resourceVersion
    const items = [...first.items]
    try {
      let next = first.metadata.continue
      while (next) {
        // oxlint-disable-next-line no-await-in-loop -- a page holds the token for the one after it
        const page = await readPage({ limit: pageSize, continue: next })
        for (const item of page.items) items.push(item)
        next = page.metadata.continue
      }
      return { items, version }
    } catch (error) {
      if (!isKubeError(error, 'Expired')) throw error
      // That moment was compacted while its pages were read. One answer with everything cannot expire half-way.
      const all = await readPage({})
      return { items: all.items, version: all.metadata.resourceVersion }
    }
  }

  /** Follows the changes since the replica's version until the watch ends. */
  async #watch(signal: AbortSignal): Promise<Ending> {
    const { client, resource, clock } = this.#options
    const attempt = new Attempt(clock, signal, idleMs)
    this.#interruptible = attempt
    try {
      const events = await client.watch(resource, {
        ...this.#scope,
        resourceVersion: this.#replica.version ?? '0',
        timeoutSeconds: Math.round(watchSeconds.least + watchSeconds.spread * this.#random()),
        signal: attempt.signal,
      })
      for await (const event of events) {
        if (attempt.interruption !== undefined) break
        attempt.heard()
        this.#apply(event)
      }
      return this.#endingOf(attempt, undefined)
    } catch (error) {
      return this.#endingOf(attempt, error)
    } finally {
      this.#interruptible = undefined
      attempt.release()
    }
  }

  #apply(event: WatchEvent<T>): void {
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED':
        return this.#replica.applyEvent(event)
      case 'BOOKMARK':
        return this.#replica.applyBookmark(event.object.metadata.resourceVersion)
      case 'ERROR':
        throw errorOf(event.object)
      default:
        return event satisfies never
    }
  }

  /** What became of an attempt that threw `error`, or ended quietly. */
  #endingOf(attempt: Attempt, error: unknown): Ending {
    switch (attempt.interruption) {
      case 'stopped':
      case 'interrupted':
        return { kind: 'interrupted' }
      case 'idle':
        return { kind: 'broken', reason: 'idle' }
      case undefined:
        if (error === undefined) return { kind: 'broken', reason: 'closed' }
        if (!isKubeError(error, 'Expired')) return { kind: 'broken', reason: reasonOf(error), error }
        // The events since our version are gone.
        this.#mustList = true
        return { kind: 'broken', reason: 'expired' }
      default:
        return attempt.interruption satisfies never
    }
  }

  #delayMs(error: unknown, failures: number): number {
    const askedForMs = error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0
    return Math.max(askedForMs, backoffMs(restartBackoff, failures, this.#random))
  }

  async #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    if (delayMs === 0) return
    const attempt = new Attempt(this.#options.clock, signal)
    this.#interruptible = attempt
    await this.#options.clock.sleep(delayMs, attempt.signal)
    this.#interruptible = undefined
    attempt.release()
  }

  #report(reason: RestartReason, error: unknown, delayMs: number): void {
    const { resource, log, onRestart } = this.#options
    const fields = { resource: resource.plural, reason, delayMs: Math.round(delayMs) }
    if (error === undefined) log.debug(fields, 'connecting again')
    else log.warn({ ...fields, err: error }, 'connecting again after an error')
    onRestart?.(reason)
  }
}

function errorOf(status: { code?: number; reason?: string; message?: string }): KubeError {
  const isExpired = status.code === 410 || status.reason === 'Expired' || status.reason === 'Gone'
  return new WatchError(isExpired ? 'Expired' : 'ServerError', status.message ?? 'the watch reported an error', {
    status: status.code ?? 0,
    ...(status.reason === undefined ? {} : { reason: status.reason }),
  })
}

function reasonOf(error: unknown): RestartReason {
  if (error instanceof WatchError) return 'error-event'
  if (isKubeError(error, 'Unauthorized')) return 'unauthorized'
  if (isKubeError(error, 'TooManyRequests')) return 'throttled'
  if (isKubeError(error, 'Unreachable', 'OutcomeUnknown')) return 'connection'
  if (isKubeError(error, 'ServerError')) return 'server-error'
  return 'other'
}
