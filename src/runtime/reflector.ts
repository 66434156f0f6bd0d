import type { Logger } from 'pino'
import type { KubeClient, ListOptions } from '../kube/client.ts'
import { isKubeError, KubeError } from '../kube/errors.ts'
import type { KubeObject, Resource } from '../kube/object.ts'
import { Attempt } from './attempt.ts'
import { backoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import type { Change, Informer } from './informer.ts'
import { listPages } from './list-pages.ts'
import { Replica } from './replica.ts'
import { type RestartReason, restartReason } from './restart-reason.ts'
import type { IndexFunction, ReadStore } from './store.ts'

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

/** Wait for a page of a list, or for a watch to open: the server's own limit for a request that is no watch. */
const replyMs = 60_000
/**
 * Silence after which an open watch is taken for dead. The server sends a bookmark about each minute,
 * except on a resource that has never changed since the server started: there this costs one request in three minutes.
 */
const idleMs = 3 * 60_000
/** How long the server is asked to keep a watch open: spread, like client-go's, so that not all reopen together. */
const watchSeconds = { least: 300, spread: 300 }
/** A watch that lived this long was healthy: the next interruption counts as the first. */
const healthyMs = 10_000
const restartBackoff = { baseMs: 200, maxMs: 30_000 }

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
  /** Of the run under way, or of the last one. */
  #runSignal: AbortSignal | undefined
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
    const ended = [signal, this.#runSignal].find((each) => each?.aborted)
    if (ended !== undefined) return Promise.reject(ended.reason as Error)
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
    this.#runSignal = signal
    let failures = 0
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
    const { client, resource, clock } = this.#options
    const attempt = new Attempt(clock, signal, replyMs)
    try {
      const { items, version } = await listPages<T>(async (page) => {
        const list = await client.list(resource, { ...this.#scope, ...page, signal: attempt.signal })
        attempt.heard()
        return list
      })
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

  /** Follows the changes since the replica's version until the watch ends. */
  async #watch(signal: AbortSignal): Promise<Ending> {
    const { client, resource, clock } = this.#options
    const attempt = new Attempt(clock, signal, replyMs)
    this.#interruptible = attempt
    try {
      const events = await client.watch(resource, {
        ...this.#scope,
        resourceVersion: this.#replica.version ?? '0',
        timeoutSeconds: Math.round(watchSeconds.least + watchSeconds.spread * this.#random()),
        signal: attempt.signal,
      })
      attempt.heard(idleMs)
      for await (const event of events) {
        if (attempt.interruption !== undefined) break
        attempt.heard()
        this.#replica.apply(event)
      }
      return this.#endingOf(attempt, undefined)
    } catch (error) {
      return this.#endingOf(attempt, error)
    } finally {
      this.#interruptible = undefined
      attempt.release()
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
        if (!isKubeError(error, 'Expired')) return { kind: 'broken', reason: restartReason(error), error }
        // The events since our version are gone. That is no fault: it happens to whoever was away for long.
        this.#mustList = true
        return { kind: 'broken', reason: 'expired' }
      default:
        return attempt.interruption satisfies never
    }
  }

  #delayMs(error: unknown, failures: number): number {
    const askedForMs = error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0
    // No earlier than asked, and not all who were asked at the same moment.
    return askedForMs + backoffMs(restartBackoff, failures, this.#random)
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
