import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import { apiVersionOf, type KubeObject, type Resource } from '../kube/object.ts'
import type { Clock } from './clock.ts'

/** The record that candidates compete for. */
export interface Lease extends KubeObject {
  spec?: LeaseSpec
}

export interface LeaseSpec {
  /** Empty or absent: nobody holds it. */
  holderIdentity?: string
  leaseDurationSeconds?: number
  /** RFC 3339 with microseconds, like `renewTime`. */
  acquireTime?: string
  renewTime?: string
  leaseTransitions?: number
}

export const leases: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
}

export interface LeaseLockOptions {
  readonly client: KubeClient
  /** Where the Lease lives, and what it is called. */
  readonly namespace: string
  readonly name: string
  /** Unique to this process: two processes of one identity would both hold the lease. */
  readonly identity: string
  readonly clock: Clock
  /** For how long others leave the lease alone after each renewal. */
  readonly leaseMs: number
}

/** A Lease object used as a lock, by the rules that client-go's leader election follows. */
export class LeaseLock {
  readonly #options: LeaseLockOptions
  /** What the lease said last, and when that changed by our own clock: the holder's clock is not trusted. */
  #observed: { readonly spec: string; readonly changedMs: number } | undefined
  /** The lease as our last write left it; undefined when somebody may have written since, or that write's outcome is unknown. */
  #ours: Lease | undefined
  #renewedMs: number | undefined

  constructor(options: LeaseLockOptions) {
    this.#options = options
  }

  /**
   * While the lock is held: when the write that last renewed it was *sent*, on the monotonic clock. Others count from a
   * later moment, so what remains by this reckoning remains by theirs.
   */
  get renewedMs(): number | undefined {
    return this.#renewedMs
  }

  /** Takes or renews the lock, and resolves to false when another holds it. Rejects with a KubeError. */
  async hold(signal: AbortSignal): Promise<boolean> {
    const { client, clock } = this.#options
    const current = this.#ours ?? (await this.#read(signal))
    if (current !== undefined && !this.#isFree(current)) {
      this.#renewedMs = undefined
      return false
    }
    this.#ours = undefined
    const sentMs = clock.monotonic()
    this.#ours =
      current === undefined
        ? await client.create(leases, this.#firstLease(), { signal })
        : await client.replace(leases, { ...current, spec: this.#claimOn(current.spec) }, { signal })
    this.#renewedMs = sentMs
    return true
  }

  /** No longer counts as the holder, whatever the lease says. */
  drop(): void {
    this.#renewedMs = undefined
  }

  /** Gives the lock back so that another can take it at once. Rejects with a KubeError. */
  async release(signal: AbortSignal): Promise<void> {
    this.drop()
    const { client, identity } = this.#options
    const current = this.#ours ?? (await this.#read(signal))
    this.#ours = undefined
    if (current?.spec?.holderIdentity !== identity) return
    const now = this.#microTime()
    // One second: the shortest duration that the API accepts.
    const spec = { ...current.spec, holderIdentity: '', leaseDurationSeconds: 1, acquireTime: now, renewTime: now }
    await client.replace(leases, { ...current, spec }, { signal })
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, clock, namespace, name } = this.#options
    try {
      const lease = await client.get(leases, { namespace, name }, { signal })
      const spec = JSON.stringify(lease.spec ?? {})
      if (spec !== this.#observed?.spec) this.#observed = { spec, changedMs: clock.monotonic() }
      return lease
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return undefined
      throw error
    }
  }

  /** Nobody's, ours, or not renewed for as long as its holder asked for while we were looking. */
  #isFree({ spec }: Lease): boolean {
    const { clock, identity, leaseMs } = this.#options
    if (!spec?.holderIdentity || spec.holderIdentity === identity) return true
    const durationMs = spec.leaseDurationSeconds === undefined ? leaseMs : spec.leaseDurationSeconds * 1000
    return this.#observed !== undefined && clock.monotonic() >= this.#observed.changedMs + durationMs
  }

  #firstLease(): Lease {
    const { namespace, name } = this.#options
    const spec = { ...this.#claimOn({}), leaseTransitions: 0 }
    return { apiVersion: apiVersionOf(leases), kind: leases.kind, metadata: { namespace, name }, spec }
  }

  /** The spec that makes us the holder in the place of the one in `current`. */
  #claimOn(current: LeaseSpec = {}): LeaseSpec {
    const { identity, leaseMs } = this.#options
    const renewTime = this.#microTime()
    const renewed = { ...current, holderIdentity: identity, leaseDurationSeconds: leaseMs / 1000, renewTime }
    if (current.holderIdentity === identity) return renewed
    return { ...renewed, acquireTime: renewTime, leaseTransitions: (current.leaseTransitions ?? 0) + 1 }
  }

  #microTime(): string {
    return new Date(this.#options.clock.now()).toISOString().replace('Z', '000Z')
  }
}
