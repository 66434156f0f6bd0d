import { sandboxKind, sandboxSetKind, sandboxWarmPoolKind } from '../api/kinds.ts'
import type { Resource } from '../kube/object.ts'
import { originVerifier } from '../planning/origin.ts'
import { planPool, type PoolPlan } from '../planning/plan-pool.ts'
import { isUrgent, poolStatus, statusPatch } from '../planning/pool-status.ts'
import { isSandboxSet, poolSelector, type Pool } from '../planning/pools.ts'
import { runController, type Outcome } from '../runtime/controller.ts'
import { createControllerQueue } from './controller-queue.ts'
import type { Controller, ControllerDependencies } from './dependencies.ts'
import { act } from './pool-act.ts'
import { longestYieldMs, yieldStepMs } from './pool-create.ts'
import { gatherPool, livePool, type GatheredPool, type PoolSources } from './pool-gather.ts'
import { PoolMemory, poolKey } from './pool-memory.ts'
import { measurePools } from './pool-metrics.ts'
import { reportStatus, reportUnproven } from './pool-report.ts'
import { allPools, wakePools } from './pool-wakes.ts'

/** Pools under way at a time. Each sends requests in batches of its own, so few are enough. */
const concurrency = 4
/** More stock is published no more often than this: a pool that fills writes its status a few times, not for each sandbox. */
const publishIntervalMs = 200
/** Somebody was faster than our cache, which will show it in a moment; if it does not, this is when to look. */
const contentionRecheckMs = 100
/** No state waits for an event alone. */
const longestWaitMs = 10 * 60_000

/** Keeps the stock of both pool kinds: gather, plan, act, publish. */
export function createPoolController(deps: ControllerDependencies): Controller {
  const queue = createControllerQueue('pool', deps)
  const memory = new PoolMemory(deps.clock)
  const sources: PoolSources = { deps, memory, verify: originVerifier(deps.originKeys) }

  const reconcile = async (key: string, signal: AbortSignal): Promise<Outcome> => {
    const pool = livePool(key, sources)
    if (!pool) return { kind: 'done' }
    await resolveExpired(pool, sources)
    // From here to the first request nothing is awaited: the plan is made on one state of the caches.
    const now = serverTime(deps)
    const gathered = gatherPool(pool, sources, now)
    const plan = planPool(gathered.view, now)
    reportUnproven(gathered, deps)
    gathered.notes.states = countStates(plan.kept)
    if (yieldsToClaims(plan, gathered, deps)) {
      return { kind: 'recheck', afterMs: yieldStepMs, because: 'claims are waiting to be bound' }
    }
    const { error, isContended, isEnding, retryAt } = await act(plan, gathered, sources, signal)
    if (isEnding) return { kind: 'done' }
    const publishAt = await publish(plan, gathered, sources)
    if (error !== undefined) throw error
    if (isContended) return { kind: 'recheck', afterMs: contentionRecheckMs, because: 'somebody else was faster' }
    const dueAt = Math.min(plan.lookAgainAt ?? Infinity, retryAt ?? Infinity, publishAt ?? Infinity)
    const afterMs = Math.max(0, Math.min(longestWaitMs, dueAt - serverTime(deps)))
    return { kind: 'recheck', afterMs, because: 'something falls due' }
  }

  wakePools(sources, queue)
  measurePools(deps, memory)
  return {
    name: 'pool',
    queue,
    run: (signal) => {
      // What was written as a leader before may have been changed since by another one.
      for (const pool of allPools(deps)) queue.add(poolKey(pool))
      return runController({ name: 'pool', queue, reconcile, concurrency, clock: deps.clock, log: deps.log }, signal)
    },
  }
}

/** Refilling alone can wait for claims, and for no longer than two seconds; what removes stock, or changes it, does not. */
function yieldsToClaims(plan: PoolPlan, { notes }: GatheredPool, deps: ControllerDependencies): boolean {
  const now = deps.clock.monotonic()
  const isRefill = plan.create > 0 && plan.remove.length === 0
  notes.yieldingSince = isRefill && deps.claimsWaiting() > 0 ? (notes.yieldingSince ?? now) : undefined
  return notes.yieldingSince !== undefined && now - notes.yieldingSince < longestYieldMs
}

/** Writes the status when it differs. Returns when to come back, if it was put off; milliseconds since the epoch. */
async function publish(
  plan: PoolPlan,
  { view, notes }: GatheredPool,
  { deps, memory }: PoolSources,
): Promise<number | undefined> {
  const { pool } = view
  const now = serverTime(deps)
  // A refusal that this pass met is not in the plan's status yet.
  const isAsPlanned = notes.history.refusal === plan.history.refusal
  const status = isAsPlanned ? plan.status : poolStatus({ view, stock: plan.kept, history: notes.history, now })
  const patch = statusPatch(pool.status, status)
  if (!patch) return undefined
  const publishAt = notes.publishedAt + publishIntervalMs
  if (publishAt > now && !isUrgent(pool.status, status)) return publishAt
  const resource: Resource<Pool> = isSandboxSet(pool) ? sandboxSetKind : sandboxWarmPoolKind
  const { namespace = '', name = '' } = pool.metadata
  const answer = await deps.client.patch(resource, { namespace, name }, patch, { type: 'merge', subresource: 'status' })
  memory.answers.remember(answer, now)
  notes.publishedAt = now
  reportStatus(pool, pool.status, status, deps)
  return undefined
}

/**
 * Asks the API server about writes that the cache has not shown for five minutes. What is there is waited for again; what
 * is not is no longer counted.
 */
async function resolveExpired(pool: Pool, { deps, memory }: PoolSources): Promise<void> {
  const { uid = '', namespace = '' } = pool.metadata
  const expired = memory.expectations.expired(uid, deps.clock.now())
  if (expired.creates.length + expired.deletes.length === 0) return
  const { items } = await deps.client.list(sandboxKind, { namespace, labelSelector: poolSelector(pool) })
  const living = items.filter(({ metadata }) => !metadata.deletionTimestamp)
  const names = new Set(living.map(({ metadata }) => metadata.name))
  const uids = new Set(living.map(({ metadata }) => metadata.uid))
  for (const name of expired.creates) {
    if (names.has(name)) memory.expectCreate(uid, namespace, name)
    else memory.observeCreate(namespace, name)
  }
  for (const deleted of expired.deletes) {
    if (uids.has(deleted)) memory.expectations.observeDelete(uid, deleted)
    else memory.expectations.expectDelete(uid, deleted)
  }
}

function countStates(stock: PoolPlan['kept']): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { state } of stock) counts.set(state, (counts.get(state) ?? 0) + 1)
  return counts
}

function serverTime({ clock, client }: ControllerDependencies): number {
  return clock.now() + client.serverClockOffsetMs()
}
