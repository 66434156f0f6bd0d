import { sandboxKind } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { isKubeError } from '../kube/errors.ts'
import type { PoolPlan } from '../planning/plan-pool.ts'
import { afterCreate, afterRefusal } from '../planning/pool-history.ts'
import type { Complaint } from '../planning/pool-view.ts'
import { poolOwner } from '../planning/pools.ts'
import { spend } from '../planning/refill-pace.ts'
import { slowStartBatch } from '../runtime/slow-start.ts'
import { createMembers } from './pool-create.ts'
import type { GatheredPool, PoolSources } from './pool-gather.ts'
import { reportChanges } from './pool-report.ts'
import { exceededQuota } from './quota.ts'

/** How a pass went. An error is one that nobody expects: the pass is made again, with back-off. */
export interface ActResult {
  readonly error?: unknown
  /** Somebody was faster: the cache will show it. */
  readonly isContended: boolean
  /** The namespace is being deleted, and everything in it. */
  readonly isEnding: boolean
  /** When a create that the API server refused may be tried again; milliseconds since the epoch. */
  readonly retryAt?: number
}

/** Carries out a plan: removals, then creates, then adoptions. What fails is left to the next pass. */
export async function act(
  plan: PoolPlan,
  gathered: GatheredPool,
  sources: PoolSources,
  signal: AbortSignal,
): Promise<ActResult> {
  const { view, notes } = gathered
  notes.history = plan.history
  const removals = await removeMembers(plan, gathered, sources)
  // Each one that stays takes the place of one that was to come.
  const count = Math.max(0, plan.create - removals.failed)
  const creates = await createMembers(count, gathered, sources, signal)
  if (notes.pace) notes.pace = spend(notes.pace, creates.done)
  if (creates.done > 0) notes.history = afterCreate(notes.history)
  const refusal = refusalOf(creates.error)
  const now = sources.deps.clock.now() + sources.deps.client.serverClockOffsetMs()
  if (refusal) notes.history = afterRefusal(notes.history, refusal, now)
  reportChanges(view.pool, plan, { created: creates.done, removed: removals.removed }, sources.deps)
  const adoptions = await adoptOrphans(plan, gathered, sources)
  const isEnding = isNamespaceEnding(creates.error)
  const error = removals.error ?? (refusal || isEnding ? undefined : creates.error) ?? adoptions.error
  return {
    isContended: removals.isContended || adoptions.isContended,
    isEnding,
    ...(error !== undefined && { error }),
    ...(notes.history.refusal && refusal && { retryAt: notes.history.refusal.retryAt }),
  }
}

async function removeMembers(plan: PoolPlan, { view }: GatheredPool, { deps, memory }: PoolSources) {
  const { uid: poolUid = '' } = view.pool.metadata
  const removed: PoolPlan['remove'][number][] = []
  let isContended = false
  const { error } = await slowStartBatch(plan.remove.length, 1, async (index) => {
    const removal = plan.remove[index]
    if (!removal) return
    const { uid = '', resourceVersion = '', namespace = '', name = '' } = removal.sandbox.metadata
    memory.expectations.expectDelete(poolUid, uid)
    try {
      // A claim that has adopted it since has changed its version: it lives.
      await deps.client.delete(sandboxKind, { namespace, name }, { uid, resourceVersion })
      removed.push(removal)
    } catch (failure) {
      memory.expectations.observeDelete(poolUid, uid)
      if (isKubeError(failure, 'NotFound')) return
      if (!isKubeError(failure, 'Conflict')) throw failure
      isContended = true
    }
  })
  return { removed, failed: plan.remove.length - removed.length, isContended, error }
}

/** Gives orphans their owner back, with labels that say what they are made of: whoever removed one may have changed the other. */
async function adoptOrphans(plan: PoolPlan, { view }: GatheredPool, { deps }: PoolSources) {
  let isContended = false
  const { error } = await slowStartBatch(plan.adopt.length, 1, async (index) => {
    const orphan = plan.adopt[index]
    if (!orphan) return
    const { uid, resourceVersion, namespace = '', name = '' } = orphan.sandbox.metadata
    const own = view.recipe.kind === 'recipe' ? view.recipe.prototype.metadata.labels : undefined
    const trusted = [labels.blueprintHash, labels.setTemplateHash].filter((label) => own?.[label] !== undefined)
    const marks = Object.fromEntries(trusted.map((label) => [label, orphan.isFresh ? own?.[label] : null]))
    const patch = { metadata: { uid, resourceVersion, ownerReferences: [poolOwner(view.pool)], labels: marks } }
    try {
      await deps.client.patch(sandboxKind, { namespace, name }, patch, { type: 'merge' })
    } catch (failure) {
      if (!isKubeError(failure, 'Conflict', 'NotFound')) throw failure
      isContended = true
    }
  })
  return { isContended, error }
}

/** A definite no of the API server to a create, which trying again at once would not change. */
function refusalOf(error: unknown): Complaint | undefined {
  if (!isKubeError(error, 'Forbidden', 'Invalid', 'BadRequest') || isNamespaceEnding(error)) return undefined
  const quota = exceededQuota(error)
  return { reason: quota ? 'QuotaExceeded' : 'FailedCreate', message: quota ?? error.message }
}

function isNamespaceEnding(error: unknown): boolean {
  return isKubeError(error, 'Forbidden') && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
}
