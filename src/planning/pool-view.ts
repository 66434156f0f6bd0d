import type { Pod } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { isSandboxSet, type Pool } from './pools.ts'
import type { RecipeOrObstacle } from './recipe.ts'

/** What becomes of stock whose blueprint is no longer current. */
export type Strategy =
  /** It stays until it is claimed. */
  | { readonly kind: 'replenish' }
  /** It goes at once. */
  | { readonly kind: 'recreate' }
  /** It goes as long as fewer than `maxUnavailable` sandboxes are missing. */
  | { readonly kind: 'rolling'; readonly maxUnavailable: number }

/** A Sandbox of the pool that its cache shows: unclaimed, not being deleted, with the pool's proof of origin. */
export interface Member {
  readonly sandbox: Sandbox
  /** It has lost its owner reference and is to get it back. */
  readonly isOrphan: boolean
  /** False when the key that signed its proof is lost: no claim can be given it. */
  readonly isProvable: boolean
}

export interface Complaint {
  readonly reason: string
  readonly message: string
}

/** What is remembered of a pool from pass to pass. A controller that starts anew loses nothing but patience. */
export interface PoolHistory {
  /** The revision that all of it belongs to; another one starts without. */
  readonly revision: string | undefined
  /** How often in a row sandboxes of this revision went without one being available. */
  readonly failures: number
  /** No create before this time, in milliseconds since the epoch. */
  readonly retryAt: number
  /** What the last failure was, and the UID of the sandbox that met it. */
  readonly failure?: Complaint & { readonly uid: string }
  /** The API server refused the last create, for the how manyth time in a row, and when to try again. */
  readonly refusal?: Complaint & { readonly times: number; readonly retryAt: number }
}

/** A pool of either kind, as the planner sees it. */
export interface PoolView {
  readonly pool: Pool
  readonly desired: number
  readonly strategy: Strategy
  /** How many may be creating at once; Infinity for no limit. */
  readonly maxCreating: number
  readonly recipe: RecipeOrObstacle
  readonly members: readonly Member[]
  /** The Pod that the Sandbox's own controller made for it, from the cache. */
  readonly podOf: (sandbox: Sandbox) => Pod | undefined
  /** Creates that were issued and that the cache does not show. */
  readonly issuedCreates: number
  /** UIDs of members whose delete was issued and that the cache still shows. */
  readonly issuedDeletes: ReadonlySet<string>
  readonly history: PoolHistory
  /** Creates that the refill rate allows now, and when it allows one more. */
  readonly allowance: { readonly creates: number; readonly nextAt: number }
  /** The most creates and deletes of one pass together. */
  readonly maxBatch: number
  readonly readinessGraceMs: number
}

/** The part of a view that follows from the pool's spec and the configuration. */
export function poolSettings(
  pool: Pool,
  config: PolicyConfig,
): Pick<PoolView, 'desired' | 'strategy' | 'maxCreating' | 'maxBatch' | 'readinessGraceMs'> {
  const asked = pool.spec.replicas ?? 1
  const desired = Math.min(asked, config.pools.maxReplicas ?? asked)
  const limits = {
    desired,
    maxBatch: config.pools.maxBatch,
    readinessGraceMs: config.pools.readinessGraceSeconds * 1000,
  }
  if (!isSandboxSet(pool)) {
    const type = pool.spec.updateStrategy?.type ?? 'OnReplenish'
    return { ...limits, strategy: { kind: type === 'Recreate' ? 'recreate' : 'replenish' }, maxCreating: Infinity }
  }
  const { scaleStrategy, updateStrategy } = pool.spec
  return {
    ...limits,
    strategy: { kind: 'rolling', maxUnavailable: resolveCount(updateStrategy?.maxUnavailable ?? '20%', desired) ?? 0 },
    maxCreating:
      scaleStrategy?.maxUnavailable === undefined
        ? Infinity
        : (resolveCount(scaleStrategy.maxUnavailable, desired) ?? 0),
  }
}

/** A count, or a percentage of `total` rounded up; undefined when it is neither (admission refuses that). */
export function resolveCount(value: number | string, total: number): number | undefined {
  if (typeof value === 'number') return Math.max(0, value)
  const percent = /^(\d+)%$/.exec(value)?.[1]
  return percent === undefined ? undefined : Math.ceil((Number(percent) * total) / 100)
}
