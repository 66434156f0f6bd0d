import type { Logger } from 'pino'
import { isKubeError } from '../kube/errors.ts'
import type { Clock } from './clock.ts'
import type { WorkQueue } from './work-queue.ts'

/** What a reconcile asks of its queue. A thrown error means: again, with per-key back-off. */
export type Outcome =
  { readonly kind: 'done' } | { readonly kind: 'recheck'; readonly afterMs: number; readonly because: string }

export type Reconcile = (key: string, signal: AbortSignal) => Promise<Outcome>

/** How one reconcile ended. Contention is a lost race or a busy server: it is tried again and is no error. */
export interface ReconcileResult {
  readonly key: string
  readonly verdict: 'done' | 'recheck' | 'contention' | 'stopped' | 'failed'
  readonly durationMs: number
}

export interface ControllerOptions {
  /** Names the controller in logs. */
  readonly name: string
  readonly queue: WorkQueue
  readonly reconcile: Reconcile
  /** How many keys are reconciled at a time. */
  readonly concurrency: number
  readonly clock: Clock
  readonly log: Logger
  readonly onResult?: (result: ReconcileResult) => void
}

/**
 * Reconciles the queue's keys until `signal` ends; then takes no more, and resolves when those under way have ended.
 * They are given the same signal. An error is logged once and its key tried again with back-off; a conflict or an
 * overloaded server is not logged as an error, and the wait that the server asks for is honoured.
 */
export async function runController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  await Promise.all(Array.from({ length: options.concurrency }, () => work(options, signal)))
}

async function work(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { queue, clock, onResult } = options
  for (let key = await queue.take(signal); key !== undefined; key = await queue.take(signal)) {
    const startedMs = clock.monotonic()
    try {
      const verdict = await reconcileOne(options, key, signal)
      onResult?.({ key, verdict, durationMs: clock.monotonic() - startedMs })
    } finally {
      queue.done(key)
    }
  }
}

async function reconcileOne(
  { name, queue, reconcile, log }: ControllerOptions,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult['verdict']> {
  try {
    const outcome = await reconcile(key, signal)
    queue.forget(key)
    if (outcome.kind === 'recheck') {
      log.trace({ controller: name, key, afterMs: outcome.afterMs, because: outcome.because }, 'looking again later')
      queue.addAfter(key, outcome.afterMs)
    }
    return outcome.kind
  } catch (err) {
    if (signal.aborted && isKubeError(err, 'Aborted')) {
      // Its requests were cut off by the stop. It stays wanted, for the case that this controller is started again.
      queue.add(key)
      return 'stopped'
    }
    if (isKubeError(err, 'TooManyRequests') && err.retryAfterMs !== undefined) {
      log.debug({ controller: name, key, retryAfterMs: err.retryAfterMs }, 'the server asked to wait')
      queue.addAfter(key, err.retryAfterMs)
      return 'contention'
    }
    if (isKubeError(err, 'Conflict', 'TooManyRequests')) {
      log.debug({ controller: name, key, code: err.code }, 'reconcile met contention')
      queue.addRateLimited(key)
      return 'contention'
    }
    log.error({ controller: name, key, err, failures: queue.failures(key) + 1 }, 'reconcile failed')
    queue.addRateLimited(key)
    return 'failed'
  }
}
