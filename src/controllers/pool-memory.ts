import type { Sandbox, SandboxTemplate } from '../api/kinds.ts'
import type { Config } from '../config/schema.ts'
import { controllerOf, keyOf } from '../kube/object.ts'
import { cleanHistory } from '../planning/pool-history.ts'
import type { OriginVerdict } from '../planning/origin.ts'
import type { PoolHistory } from '../planning/pool-view.ts'
import { poolKindOf, type Pool, type PoolKind } from '../planning/pools.ts'
import type { RecipeOrObstacle } from '../planning/recipe.ts'
import type { Pace } from '../planning/refill-pace.ts'
import { Answers } from '../runtime/answers.ts'
import type { Clock } from '../runtime/clock.ts'
import { Expectations } from '../runtime/expectations.ts'

/** `verifyOrigin`, remembered per object. */
export type VerifyOrigin = (sandbox: Sandbox, ownerUid: string) => OriginVerdict

/** What a recipe was made from. It holds as long as none of these is another object. */
export interface RecipeBasis {
  readonly generation: number | undefined
  readonly referenced: SandboxTemplate | undefined
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined
  readonly config: Config
}

/** What the controller knows of one pool, by UID, beyond what the caches show. */
export interface PoolNotes {
  history: PoolHistory
  pace: Pace | undefined
  recipe: { readonly basis: RecipeBasis; readonly recipe: RecipeOrObstacle } | undefined
  /** Creates whose outcome is unknown: what was sent, by name. To be sent again as it was. */
  readonly unresolved: Map<string, Sandbox>
  /** UIDs of Sandboxes that pass themselves off as the pool's and were reported. */
  reported: ReadonlySet<string>
  /** Since when refilling has let claims go first; monotonic milliseconds. */
  yieldingSince: number | undefined
  /** When the status was last written. */
  publishedAt: number
  /** Members by state after the last pass. */
  states: ReadonlyMap<string, number>
}

/** The controller's memory. Lost with the process, without harm. */
export class PoolMemory {
  readonly expectations: Expectations
  /** Pools as the server answered our own status writes. */
  readonly answers = new Answers<Pool>()
  readonly #notes = new Map<string, PoolNotes>()
  /** UIDs of the pools that were seen under a queue key. */
  readonly #uids = new Map<string, string>()
  /** Pool UIDs by the key of a Sandbox whose create is expected: a claim may have it before we see it as stock. */
  readonly #expectedBy = new Map<string, string>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.expectations = new Expectations(clock)
  }

  notesOf(pool: Pool): PoolNotes {
    const uid = pool.metadata.uid ?? ''
    const key = poolKey(pool)
    // A pool of the same name that was deleted and made anew is another pool.
    if (this.#uids.get(key) !== uid) this.forget(key)
    this.#uids.set(key, uid)
    let notes = this.#notes.get(uid)
    if (!notes) {
      notes = {
        history: cleanHistory,
        pace: undefined,
        recipe: undefined,
        unresolved: new Map(),
        reported: new Set(),
        yieldingSince: undefined,
        publishedAt: -Infinity,
        states: new Map(),
      }
      this.#notes.set(uid, notes)
    }
    return notes
  }

  /** Members by state, as of the pool's last pass. */
  statesOf(pool: Pool): ReadonlyMap<string, number> {
    return this.#notes.get(pool.metadata.uid ?? '')?.states ?? new Map<string, number>()
  }

  /** Forgets the pool that a queue key stood for. */
  forget(key: string): void {
    const uid = this.#uids.get(key)
    if (uid === undefined) return
    this.#uids.delete(key)
    this.#notes.delete(uid)
    this.expectations.forgetOwner(uid)
    this.answers.forget(uid)
    for (const [sandboxKey, owner] of this.#expectedBy) if (owner === uid) this.#expectedBy.delete(sandboxKey)
  }

  expectCreate(poolUid: string, namespace: string, name: string): void {
    this.expectations.expectCreate(poolUid, name)
    this.#expectedBy.set(`${namespace}/${name}`, poolUid)
  }

  isExpected(sandbox: Sandbox): boolean {
    return this.#expectedBy.has(keyOf(sandbox))
  }

  /**
   * The cache shows the Sandbox. An expected one has come once it can be judged: adopted, on its way out, or with a proof.
   * Before that it is one that another webhook changed on its way in, and whose proof is being made anew.
   */
  see(sandbox: Sandbox, verify: VerifyOrigin): void {
    const poolUid = this.#expectedBy.get(keyOf(sandbox))
    if (poolUid === undefined) return
    const { namespace = '', name = '', deletionTimestamp } = sandbox.metadata
    const isPools = deletionTimestamp === undefined && controllerOf(sandbox)?.uid === poolUid
    if (!isPools || verify(sandbox, poolUid) !== 'invalid') this.observeCreate(namespace, name)
  }

  /** The Sandbox has come or gone, or will certainly not come to be. */
  observeCreate(namespace: string, name: string): void {
    const key = `${namespace}/${name}`
    const poolUid = this.#expectedBy.get(key)
    if (poolUid === undefined) return
    this.#expectedBy.delete(key)
    this.expectations.observeCreate(poolUid, name)
    this.#notes.get(poolUid)?.unresolved.delete(name)
  }
}

/** Queue key of a pool: `<kind>/<namespace>/<name>`. */
export function poolKey(pool: Pool): string {
  return poolKeyOf(poolKindOf(pool), pool.metadata.namespace ?? '', pool.metadata.name ?? '')
}

export function poolKeyOf(kind: PoolKind, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`
}

export function parsePoolKey(key: string): { readonly kind: PoolKind; readonly key: string } {
  const separator = key.indexOf('/')
  return {
    kind: key.slice(0, separator) === 'SandboxSet' ? 'SandboxSet' : 'SandboxWarmPool',
    key: key.slice(separator + 1),
  }
}
