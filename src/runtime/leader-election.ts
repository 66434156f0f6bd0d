import type { Logger } from 'pino'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import { Attempt } from './attempt.ts'
import type { Clock } from './clock.ts'
import { LeaseLock } from './lease-lock.ts'

/** client-go's timings. */
const leaseMs = 15_000
const renewDeadlineMs = 10_000
const retryMs = 2_000
/** client-go's JitterFactor: a candidate waits up to this many times `retryMs` longer, so that not all ask together. */
const retryJitter = 1.2
/** Half the renew deadline, like client-go: one request without a reply leaves time for another. */
const requestMs = renewDeadlineMs / 2
/** A write may be under way for 3 s until it times out; it must be over before anyone else can lead. */
const writeMarginMs = 3_000

export interface LeaderElectionOptions {
  readonly client: KubeClient
  /** Where the Lease lives, and what it is called. */
  readonly namespace: string
  readonly name: string
  /** Unique to this process: two processes of one identity would both lead. */
  readonly identity: string
  readonly clock: Clock
  readonly log: Logger
  /** Called when this process begins and ceases to lead. */
  readonly onChange?: (isLeader: boolean) => void
  /** Jitter: a number in [0, 1). */
  readonly random?: () => number
}

/** The work of a leader; `signal` ends when it must stop. */
export type Lead = (signal: AbortSignal) => Promise<void>

export interface LeaderElection {
  readonly isLeader: boolean
  /**
   * True while this process leads and a write sent now is over before the lease is. Ask before each write, with no
   * `await` between.
   */
  canWrite(): boolean
  /**
   * Competes for the lease until `signal` ends, and calls `lead` each time it is won. The signal that `lead` gets ends
   * when the lease is lost or `signal` ends; the lease is renewed until `lead` has then finished, and released at once so
   * that a successor need not wait for it to run out. If `lead` finishes by itself so does this, with the same result;
   * how it finishes when it is told to is only logged.
   */
  run(lead: Lead, signal: AbortSignal): Promise<void>
}

/** Leader election over a Lease with client-go's rules and timings: a client-go process may compete for it too. */
export function createLeaderElection(options: LeaderElectionOptions): LeaderElection {
  return new Elector(options)
}

class Elector implements LeaderElection {
  readonly #lock: LeaseLock
  readonly #clock: Clock
  readonly #log: Logger
  readonly #random: () => number
  readonly #onChange: (isLeader: boolean) => void

  constructor({ log, onChange = () => {}, random = Math.random, ...options }: LeaderElectionOptions) {
    this.#lock = new LeaseLock({ ...options, leaseMs })
    this.#clock = options.clock
    this.#log = log.child({ lease: options.name, identity: options.identity })
    this.#random = random
    this.#onChange = onChange
  }

  get isLeader(): boolean {
    return this.#lock.renewedMs !== undefined
  }

  canWrite(): boolean {
    return this.#remainingMs() > writeMarginMs
  }

  async run(lead: Lead, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (await this.#hold(requestMs, signal)) {
        const finishedByItself = await this.#serve(lead, signal)
        if (finishedByItself) return
      }
      await this.#clock.sleep(retryMs * (1 + retryJitter * this.#random()), signal)
    }
  }

  /** One term of office. True when `lead` finished without being told to. */
  async #serve(lead: Lead, signal: AbortSignal): Promise<boolean> {
    this.#log.info('became the leader')
    this.#onChange(true)
    const term = new Attempt(this.#clock, signal)
    const finished = new AbortController()
    const working = Promise.allSettled([lead(term.signal).finally(() => finished.abort())])
    await this.#renewUntil(finished.signal)
    const isLost = !finished.signal.aborted
    const wasTold = isLost || term.interruption !== undefined
    if (isLost) {
      this.#lock.drop()
      this.#log.warn('lost the lease')
      term.interrupt('interrupted')
    }
    const [work] = await working
    term.release()
    if (!isLost) await this.#release()
    this.#onChange(false)
    if (work.status === 'rejected') {
      if (!wasTold) throw work.reason
      // Being cut off is how much of it ends; the next term starts afresh.
      this.#log.warn({ err: work.reason as unknown }, 'the work was stopped with an error')
    }
    return !wasTold
  }

  /** Renews the lease, also while the work is being stopped; resolves when the work has finished or the lease is lost. */
  async #renewUntil(finished: AbortSignal): Promise<void> {
    for (;;) {
      await this.#clock.sleep(Math.min(retryMs, this.#untilDeadlineMs()), finished)
      // Asked again after the sleep: a process that was stopped for a while finds its time gone without having failed.
      const untilDeadlineMs = this.#untilDeadlineMs()
      if (finished.aborted || untilDeadlineMs <= 0) return
      // Not cut off when the work finishes: the release that follows is one request if this one's outcome is known.
      await this.#hold(Math.min(requestMs, untilDeadlineMs), undefined)
    }
  }

  /** Tries once to take or renew the lease; false when another holds it or the API server does not answer in time. */
  async #hold(timeoutMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    const attempt = new Attempt(this.#clock, signal, timeoutMs)
    try {
      return await this.#lock.hold(attempt.signal)
    } catch (err) {
      // Losing a race is the usual way to learn that another was faster.
      if (isKubeError(err, 'Conflict', 'AlreadyExists')) this.#log.debug('lost a race for the lease')
      else if (attempt.interruption !== 'stopped') this.#log.warn({ err }, 'could not take or renew the lease')
      return false
    } finally {
      attempt.release()
    }
  }

  async #release(): Promise<void> {
    const attempt = new Attempt(this.#clock, undefined, requestMs)
    try {
      await this.#lock.release(attempt.signal)
      this.#log.info('released the lease')
    } catch (err) {
      this.#log.warn({ err }, 'could not release the lease; it runs out by itself')
    } finally {
      attempt.release()
    }
  }

  /** What is left of the lease, in milliseconds; less than nothing when it is not held. */
  #remainingMs(): number {
    return (this.#lock.renewedMs ?? -Infinity) + leaseMs - this.#clock.monotonic()
  }

  /** What is left of the time in which a renewal must succeed. */
  #untilDeadlineMs(): number {
    return this.#remainingMs() - (leaseMs - renewDeadlineMs)
  }
}
