import type { Sandbox } from '../api/kinds.ts'
import { NodeSpreadQueue, type Queued } from './node-spread-queue.ts'

/**
 * What a member of a pool is worth to a claim, best first:
 * - `ready`: Ready with an address.
 * - `outdated`: the same, but stale during a SandboxSet's rolling update; used when no fresh one is ready.
 * - `addressed`: not Ready yet but with an address; used when nothing better exists, and only from a SandboxWarmPool.
 * - `warming`: no address yet. Never handed out; a young claim waits a moment for it.
 */
export type Worth = 'ready' | 'outdated' | 'addressed' | 'warming'

export interface Candidate {
  readonly sandbox: Sandbox
  readonly worth: Worth
}

export type Stock =
  | { readonly kind: 'candidate'; readonly sandbox: Sandbox }
  /** Members exist, none of which has an address yet. */
  | { readonly kind: 'warming' }
  | { readonly kind: 'empty' }

const handedOut = ['ready', 'outdated', 'addressed'] as const

/** The candidates of one pool. Every operation is O(log n). */
export class PoolStock {
  readonly #queues = {
    ready: new NodeSpreadQueue<Queued>(),
    outdated: new NodeSpreadQueue<Queued>(),
    addressed: new NodeSpreadQueue<Queued>(),
    warming: new NodeSpreadQueue<Queued>(),
  }
  readonly #candidates = new Map<string, Candidate & { readonly place: Queued }>()

  get size(): number {
    return this.#candidates.size
  }

  /**
   * Adds the candidate, or moves it to the place that its new state gives it. True when it can be handed out and could
   * not before.
   */
  put({ sandbox, worth }: Candidate): boolean {
    const uid = sandbox.metadata.uid ?? ''
    const node = sandbox.status?.nodeName ?? ''
    const known = this.#candidates.get(uid)
    const isNewlyOffered = worth !== 'warming' && (known === undefined || known.worth === 'warming')
    if (known?.worth === worth && known.place.node === node) {
      this.#candidates.set(uid, { sandbox, worth, place: known.place })
      return isNewlyOffered
    }
    this.remove(uid)
    const place = { uid, node, createdAt: Date.parse(sandbox.metadata.creationTimestamp ?? '') }
    this.#candidates.set(uid, { sandbox, worth, place })
    this.#queues[worth].add(place)
    return isNewlyOffered
  }

  remove(uid: string): boolean {
    const known = this.#candidates.get(uid)
    if (known === undefined) return false
    this.#candidates.delete(uid)
    return this.#queues[known.worth].remove(uid)
  }

  /** The best candidate, which stays in stock until it is removed. */
  best(): Stock {
    for (const worth of handedOut) {
      const place = this.#queues[worth].peek()
      const candidate = place && this.#candidates.get(place.uid)
      if (candidate) return { kind: 'candidate', sandbox: candidate.sandbox }
    }
    return this.#queues.warming.size > 0 ? { kind: 'warming' } : { kind: 'empty' }
  }
}
