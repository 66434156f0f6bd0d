import type { Event } from '../api/core.ts'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate, SandboxWarmPool } from '../api/kinds.ts'
import { annotations, conditionTypes, labels } from '../api/vocabulary.ts'
import type { Config } from '../config/schema.ts'
import { controllerOf, keyOf } from '../kube/object.ts'
import { findCondition } from '../planning/conditions.ts'
import { freshnessJudge } from '../planning/freshness.ts'
import { memberState } from '../planning/member-state.ts'
import { launchTypeOf } from '../planning/launch-type.ts'
import { poolSettings } from '../planning/pool-view.ts'
import { isSandboxSet, poolHashOf, poolKindOf, referencedTemplate, templateOf, type Pool } from '../planning/pools.ts'
import { recipeOf } from '../planning/recipe.ts'

/** What a status is made from. */
export interface StatusObjects {
  readonly warmPools: readonly SandboxWarmPool[]
  readonly sets: readonly SandboxSet[]
  readonly templates: readonly SandboxTemplate[]
  readonly sandboxes: readonly Sandbox[]
  readonly claims: readonly SandboxClaim[]
  /** Of refused admissions. */
  readonly refusals: readonly Event[]
}

/** The shape of `-o json`, documented in docs/operations.md: fields may be added, none goes or changes its meaning. */
export interface StatusReport {
  readonly pools: readonly PoolLine[]
  /** The latest first. */
  readonly claims: readonly ClaimLine[]
  /** The latest first, of what the API server still has: an hour's. */
  readonly refusals: readonly RefusalLine[]
}

export interface PoolLine {
  readonly namespace: string
  readonly name: string
  readonly kind: string
  readonly desired: number
  readonly ready: number
  readonly creating: number
  /** Of a blueprint that is no longer current; absent when this user may not read what it takes to tell. */
  readonly stale?: number
  /** Why it comes no closer to what is desired. */
  readonly trouble?: { readonly reason: string; readonly message: string }
}

export interface ClaimLine {
  readonly namespace: string
  readonly name: string
  readonly pool: string
  readonly ready: boolean
  /** Reason of its Ready condition; absent until it has one. */
  readonly reason?: string
  readonly sandbox?: string
  readonly launchType?: 'warm' | 'cold'
  /** When its readiness last changed; before there was any, its creation. */
  readonly since?: string
  /** From admission to its present readiness, in whole seconds rounded down: conditions count no finer. */
  readonly latencySeconds?: number
}

export interface RefusalLine {
  readonly namespace: string
  readonly object: string
  readonly count: number
  readonly lastAt: string
  readonly message: string
}

/**
 * Puts a status together. Without the configuration that the
 * controllers use, `config`, it is not known what a SandboxWarmPool would make now, and so not what is stale.
 */
export function statusReport(objects: StatusObjects, config: Config | undefined): StatusReport {
  const pools: readonly Pool[] = [...objects.warmPools, ...objects.sets]
  const templates = new Map(objects.templates.map((template) => [keyOf(template), template]))
  const sandboxes = new Map(objects.sandboxes.map((sandbox) => [keyOf(sandbox), sandbox]))
  const stock = Map.groupBy(objects.sandboxes, (sandbox) =>
    stockKey(sandbox, sandbox.metadata.labels?.[labels.warmPool]),
  )
  return {
    pools: pools
      .map((pool) => {
        const name = referencedTemplate(pool)
        const template = templateOf(pool, templates.get(`${pool.metadata.namespace}/${name}`))
        return poolLine(pool, template, stock.get(stockKey(pool, poolHashOf(pool))) ?? [], config)
      })
      .toSorted((a, b) => compare(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`)),
    claims: objects.claims
      .toSorted((a, b) => -compare(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''))
      .map((claim) => claimLine(claim, sandboxes.get(`${claim.metadata.namespace}/${claim.status?.sandbox?.name}`))),
    refusals: objects.refusals.map(refusalLine).toSorted((a, b) => -compare(a.lastAt, b.lastAt)),
  }
}

const stockKey = ({ metadata }: Pool | Sandbox, hash: string | undefined) => `${metadata.namespace}/${hash}`

function poolLine(
  pool: Pool,
  template: SandboxTemplate | undefined,
  stock: readonly Sandbox[],
  config: Config | undefined,
): PoolLine {
  const { namespace = '', name = '' } = pool.metadata
  const { replicas = 0, readyReplicas, availableReplicas, updatedReplicas } = { ...pool.status } as Counts
  const ready = availableReplicas ?? readyReplicas ?? 0
  const progressing = findCondition(pool.status?.conditions, conditionTypes.progressing)
  const stale = isSandboxSet(pool)
    ? replicas - (updatedReplicas ?? replicas)
    : config && staleIn(stock, pool, template, config)
  return {
    namespace,
    name,
    kind: poolKindOf(pool),
    desired: config ? poolSettings(pool, config).desired : (pool.spec.replicas ?? 1),
    ready,
    creating: replicas - ready,
    ...(stale !== undefined && { stale }),
    ...(progressing?.status === 'False' && {
      trouble: { reason: progressing.reason, message: progressing.message },
    }),
  }
}

interface Counts {
  readonly replicas?: number
  readonly readyReplicas?: number
  readonly availableReplicas?: number
  readonly updatedReplicas?: number
}

function staleIn(stock: readonly Sandbox[], pool: Pool, template: SandboxTemplate | undefined, config: Config): number {
  const isFresh = freshnessJudge(recipeOf(pool, template, { config }))
  const members = stock.filter((sandbox) => {
    const owner = controllerOf(sandbox)
    const isOurs = owner === undefined || owner.uid === pool.metadata.uid
    return isOurs && !sandbox.metadata.deletionTimestamp && memberState(sandbox) !== 'dead'
  })
  return members.filter((sandbox) => !isFresh({ sandbox, isOrphan: !controllerOf(sandbox) })).length
}

function claimLine(claim: SandboxClaim, sandbox: Sandbox | undefined): ClaimLine {
  const { namespace = '', name = '', creationTimestamp } = claim.metadata
  const condition = findCondition(claim.status?.conditions, conditionTypes.ready)
  const bound = claim.status?.sandbox?.name
  const since = condition?.lastTransitionTime ?? creationTimestamp
  const latencySeconds = latencyOf(claim)
  return {
    namespace,
    name,
    pool: claim.spec.warmPoolRef.name,
    ready: condition?.status === 'True',
    ...(condition && { reason: condition.reason }),
    ...(bound !== undefined && { sandbox: bound }),
    ...(sandbox && { launchType: launchTypeOf(sandbox) }),
    ...(since !== undefined && { since }),
    ...(latencySeconds !== undefined && { latencySeconds }),
  }
}

function latencyOf({ metadata, status }: SandboxClaim): number | undefined {
  const ready = findCondition(status?.conditions, conditionTypes.ready)
  const admittedAt = Date.parse(metadata.annotations?.[annotations.webhookFirstObservedAt] ?? '')
  if (ready?.status !== 'True' || Number.isNaN(admittedAt)) return undefined
  // The condition's time is cut to the second, so that it may lie before the admission.
  return Math.max(0, Math.floor((Date.parse(ready.lastTransitionTime) - admittedAt) / 1000))
}

function refusalLine({ metadata, involvedObject, message, count = 1, lastTimestamp }: Event): RefusalLine {
  return {
    namespace: metadata.namespace ?? '',
    object: `${involvedObject.kind ?? '?'} ${involvedObject.name || '(generated name)'}`,
    count,
    lastAt: lastTimestamp ?? metadata.creationTimestamp ?? '',
    message,
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
