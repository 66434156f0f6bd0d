import type { SandboxSetStatus, SandboxWarmPoolStatus } from '../api/kinds.ts'
import type { Condition } from '../api/schema.ts'
import { conditionTypes } from '../api/vocabulary.ts'
import { findCondition, setCondition } from './conditions.ts'
import type { Appraised } from './pool-stock.ts'
import type { Complaint, PoolHistory, PoolView } from './pool-view.ts'
import { isSandboxSet, poolSelector } from './pools.ts'

export type PoolStatus = SandboxWarmPoolStatus | SandboxSetStatus

/** What the status counts by. */
type Counted = Pick<Appraised, 'state' | 'isFresh' | 'isProvable' | 'trouble'>

export interface Observed {
  readonly view: PoolView
  /** The stock that stays, as it is before this pass's creates. */
  readonly stock: readonly Counted[]
  readonly history: PoolHistory
  readonly now: number
}

interface Counts {
  readonly replicas: number
  readonly available: number
  readonly updated: number
  readonly updatedAvailable: number
  readonly stale: number
}

/** The pool's whole status. Conditions of other types that stand in it already are kept. */
export function poolStatus(observed: Observed): PoolStatus {
  const { view } = observed
  const { pool, recipe } = view
  const counts = count(observed.stock)
  const { generation } = pool.metadata
  const common = {
    replicas: counts.replicas,
    selector: poolSelector(pool),
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: conditions(observed, counts),
  }
  if (!isSandboxSet(pool)) return { ...common, readyReplicas: counts.available }
  // While the template is missing, the revision last seen is still what the stock is measured by.
  const updateRevision = recipe.kind === 'recipe' ? recipe.revision : pool.status?.updateRevision
  return {
    ...common,
    availableReplicas: counts.available,
    updatedReplicas: counts.updated,
    updatedAvailableReplicas: counts.updatedAvailable,
    ...(updateRevision !== undefined && { updateRevision }),
  }
}

function count(stock: readonly Counted[]): Counts {
  let [replicas, available, updated, updatedAvailable] = [0, 0, 0, 0]
  for (const { state, isFresh, isProvable } of stock) {
    if (state === 'dead') continue
    const isAvailable = state === 'available' && isProvable
    replicas += 1
    if (isAvailable) available += 1
    if (isFresh) updated += 1
    if (isFresh && isAvailable) updatedAvailable += 1
  }
  return { replicas, available, updated, updatedAvailable, stale: replicas - updated }
}

function conditions(observed: Observed, counts: Counts): Condition[] {
  const { view, now } = observed
  const { desired, pool, recipe } = view
  const resolved =
    recipe.kind === 'recipe' || recipe.reason === 'NameCollision'
      ? ({ status: 'True', reason: 'TemplateFound', message: 'The template can be used.' } as const)
      : ({ status: 'False', reason: recipe.reason, message: recipe.message } as const)
  const isFull = counts.available >= desired
  const available = {
    status: isFull ? 'True' : 'False',
    reason: isFull ? 'StockComplete' : 'StockShort',
    message: `${counts.available} of ${desired} sandboxes are available.`,
  } as const
  const said = [
    { type: conditionTypes.available, ...available },
    { type: conditionTypes.progressing, ...progressing(observed, counts) },
    { type: conditionTypes.templateResolved, ...resolved },
  ]
  const observedGeneration = pool.metadata.generation
  return said.reduce<Condition[]>(
    (list, each) => setCondition(list, { ...each, observedGeneration }, now),
    pool.status?.conditions ?? [],
  )
}

/**
 * Whether the pool comes closer to what was asked for. The first that holds:
 *  1. No recipe → False, with its reason.
 *  2. Everything asked for is there → True, Complete.
 *  3. The API server refused the last create → False.
 *  4. A rolling update, or creating, is paused by a limit of 0 → False.
 *  5. A sandbox of the current revision has trouble → False, with the Pod's own reason.
 *  6. A failing revision waits for its next attempt → False, with the reason of the last.
 *  7. → True, with what is being done.
 */
function progressing(
  { view, stock, history }: Observed,
  counts: Counts,
): { status: 'True' | 'False'; reason: string; message: string } {
  const { recipe, desired, strategy, maxCreating } = view
  const isShort = counts.replicas < desired
  const isOutdated = strategy.kind !== 'replenish' && counts.stale > 0
  const ready = strategy.kind === 'replenish' ? counts.available : counts.updatedAvailable
  if (recipe.kind === 'obstacle') return halted(recipe) // 1
  if (ready === desired && counts.replicas === desired && !isOutdated) {
    return { status: 'True', reason: 'Complete', message: 'All sandboxes are available.' } // 2
  }
  if (history.refusal && isShort) return halted(history.refusal) // 3
  if (strategy.kind === 'rolling' && strategy.maxUnavailable === 0 && isOutdated) {
    const message = `updateStrategy.maxUnavailable is 0: sandboxes of older revisions stay until it is raised.`
    return halted({ reason: 'RollingUpdatePaused', message }) // 4
  }
  if (maxCreating === 0 && isShort) {
    const message = 'scaleStrategy.maxUnavailable is 0: no sandbox is created until it is raised.'
    return halted({ reason: 'ScaleUpPaused', message }) // 4
  }
  const troubled = stock.find(({ isFresh, trouble }) => isFresh && trouble)
  if (troubled?.trouble) return halted(troubled.trouble) // 5
  if (history.failure) return halted(history.failure) // 6
  if (isOutdated) {
    return { status: 'True', reason: 'RollingUpdate', message: 'Sandboxes of older revisions are being replaced.' } // 7
  }
  return counts.replicas > desired
    ? { status: 'True', reason: 'ScalingDown', message: 'Surplus sandboxes are being removed.' }
    : { status: 'True', reason: 'Replenishing', message: 'Sandboxes are being created.' }
}

function halted({ reason, message }: Complaint): { status: 'False'; reason: string; message: string } {
  return { status: 'False', reason, message }
}

/** The merge patch on /status that turns `published` into `wanted`, or undefined when they agree. */
export function statusPatch(published: PoolStatus | undefined, wanted: PoolStatus): { status: PoolStatus } | undefined {
  const before: Record<string, unknown> = { ...published }
  const changed = Object.entries(wanted).some(([field, value]) =>
    field === 'conditions' ? !sameConditions(before[field], wanted.conditions) : before[field] !== value,
  )
  return changed ? { status: wanted } : undefined
}

function sameConditions(before: unknown, wanted: readonly Condition[] = []): boolean {
  // setCondition hands an unchanged condition on as the same object.
  return Array.isArray(before) && before.length === wanted.length && wanted.every((each, i) => each === before[i])
}

/**
 * True when others wait for this status: less stock than published, another revision or generation, or a condition that
 * says something else. More stock may wait a moment for what follows.
 */
export function isUrgent(published: PoolStatus | undefined, wanted: PoolStatus): boolean {
  if (!published || published.observedGeneration !== wanted.observedGeneration) return true
  if (stockOf(wanted).some((now, i) => now < (stockOf(published)[i] ?? 0))) return true
  if (revisionOf(published) !== revisionOf(wanted)) return true
  return (wanted.conditions ?? []).some(({ type, status, reason }) => {
    const before = findCondition(published.conditions, type)
    return before?.status !== status || before.reason !== reason
  })
}

function stockOf(status: SandboxWarmPoolStatus & SandboxSetStatus): readonly number[] {
  return [status.replicas ?? 0, status.availableReplicas ?? status.readyReplicas ?? 0]
}

function revisionOf(status: SandboxSetStatus): string | undefined {
  return status.updateRevision
}
