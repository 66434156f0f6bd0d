import type { Sandbox } from '../api/kinds.ts'
import { conditionTypes } from '../api/vocabulary.ts'
import { findCondition } from './conditions.ts'
import { createdAt, notReadySince } from './member-state.ts'
import { historyAfter, patienceMs, type Observation } from './pool-history.ts'
import { poolStatus, type PoolStatus } from './pool-status.ts'
import { appraise, Removals, type Appraised, type RemovalReason } from './pool-stock.ts'
import type { Complaint, PoolHistory, PoolView } from './pool-view.ts'

export interface PoolPlan {
  /** To be deleted, most urgent first. */
  readonly remove: readonly { readonly sandbox: Sandbox; readonly because: RemovalReason }[]
  /** How many to create, provided that every removal succeeds: one fewer for each that does not. */
  readonly create: number
  /** Stuck, but kept: replacing them would gain nothing. */
  readonly hold: readonly Sandbox[]
  /** Orphans to become owned again. */
  readonly adopt: readonly { readonly sandbox: Sandbox; readonly isFresh: boolean }[]
  readonly status: PoolStatus
  /** The stock that stays; what the status counts. */
  readonly kept: readonly Appraised[]
  readonly history: PoolHistory
  /** When to plan again if nothing happens before, in milliseconds since the epoch. */
  readonly lookAgainAt: number | undefined
}

/** A sandbox that waits for a place is looked at this often: its Pod says nothing when the wait is over but not used. */
const heldRecheckMs = 60_000
/** Stock that no claim can be given, since its key is lost, goes at this pace where a pool's strategy names none. */
const unprovablePace = 0.2

/**
 * What to do for a pool.
 *
 *  1. Members whose delete was issued are gone.
 *  2. Dead → remove.
 *  3. Creating for longer than the grace (stuck) → remove; but hold one whose Pod is waiting for a place. A failing
 *     revision is given longer each time.
 *  4. More than desired → remove the surplus. Unprovable first, then (SandboxSet) stale, then not available, then newest.
 *  5. Stale → as the strategy says. Nothing while there is no recipe: what cannot be replaced is kept.
 *     - replenish: only what no claim can be given, at a fifth of the stock at a time.
 *     - recreate: all.
 *     - rolling: those not available; then the oldest available while fewer than maxUnavailable are missing. 0 pauses it.
 *  6. Fewer than desired → create, at most as many as may be creating at once, as the refill rate allows, and as are left of
 *     the batch. Issued creates count as stock. None without a recipe, or before the time that a failing revision or
 *     a refusing API server has to wait; a failing revision is tried with one sandbox at a time.
 *  7. Orphans that stay → adopt.
 *  8. Status: what is observed, before this pass's creates.
 *  9. Look again when the next grace, expiry, wait or rate is due; at once when the batch was full.
 */
export function planPool(view: PoolView, now: number): PoolPlan {
  const stock = appraise(view) // 1
  const removals = new Removals(stock, view.maxBatch)
  for (const member of stock) if (member.state === 'dead') removals.add(member, 'dead') // 2
  const hold: Sandbox[] = []
  for (const member of stock) {
    if (member.state !== 'creating' || now < stuckAt(view, member)) continue // 3
    if (member.trouble?.isWaitingForPlace) hold.push(member.sandbox)
    else removals.add(member, 'stuck')
  }
  for (const member of surplus(view, removals.kept())) removals.add(member, 'surplus') // 4
  for (const member of outdated(view, removals.kept())) removals.add(member, 'stale') // 5
  const kept = removals.kept()
  const history = historyAfter(view.history, observe(view, stock, removals, now), now)
  const { create, limitedUntil } = creates(view, kept, history, removals, now) // 6
  const status = poolStatus({ view, stock: kept, history, now }) // 8
  return {
    remove: removals.list,
    create,
    hold,
    adopt: kept.filter(({ isOrphan, state }) => isOrphan && state !== 'dead'), // 7
    status,
    kept,
    history,
    lookAgainAt: earliest([limitedUntil, removals.isFull ? now : undefined, ...memberTimes(view, kept, now)]), // 9
  }
}

/** When a member that is creating has taken too long. */
function stuckAt({ readinessGraceMs, history, recipe }: PoolView, { sandbox, isFresh }: Appraised): number {
  const extraMs = isFresh && recipe.kind === 'recipe' ? patienceMs(history, recipe.revision) : 0
  return notReadySince(sandbox) + readinessGraceMs + extraMs
}

/** What is too much, in the order in which it goes. Issued creates are not to be had yet, and go first once they are. */
function surplus(view: PoolView, kept: readonly Appraised[]): readonly Appraised[] {
  const count = kept.length - view.desired
  if (count <= 0) return []
  const byKind = view.strategy.kind === 'rolling' ? (member: Appraised) => member.isFresh : () => true
  const worth = (member: Appraised): number =>
    (member.isProvable ? 4 : 0) + (byKind(member) ? 2 : 0) + (member.state === 'available' ? 1 : 0)
  return kept.toSorted((a, b) => worth(a) - worth(b) || createdAt(b.sandbox) - createdAt(a.sandbox)).slice(0, count)
}

function outdated(view: PoolView, kept: readonly Appraised[]): readonly Appraised[] {
  const { strategy, recipe, desired } = view
  if (recipe.kind === 'obstacle') return []
  const stale = kept.filter(({ isFresh }) => !isFresh)
  if (stale.length === 0) return []
  switch (strategy.kind) {
    case 'recreate':
      return stale
    case 'replenish':
      return withinBudget(
        kept,
        stale.filter(({ isProvable }) => !isProvable),
        desired,
        Math.ceil(desired * unprovablePace),
      )
    case 'rolling':
      return strategy.maxUnavailable === 0 ? [] : withinBudget(kept, stale, desired, strategy.maxUnavailable)
    default:
      return strategy satisfies never
  }
}

/** Those not available, and of the available the oldest, as long as no more than `maxUnavailable` are missing afterwards. */
function withinBudget(
  kept: readonly Appraised[],
  stale: readonly Appraised[],
  desired: number,
  maxUnavailable: number,
): readonly Appraised[] {
  const available = kept.filter(({ state }) => state === 'available').length
  const budget = Math.max(0, available - (desired - maxUnavailable))
  const oldest = stale
    .filter(({ state }) => state === 'available')
    .toSorted((a, b) => createdAt(a.sandbox) - createdAt(b.sandbox))
  return [...stale.filter(({ state }) => state !== 'available'), ...oldest.slice(0, budget)]
}

function observe(view: PoolView, stock: readonly Appraised[], removals: Removals, now: number): Observation {
  const revision = view.recipe.kind === 'recipe' ? view.recipe.revision : undefined
  const fresh = stock.filter(({ isFresh }) => isFresh)
  const isWorking = fresh.some(({ state }) => state === 'available')
  const failed = fresh.find(
    (member) =>
      removals.reasonOf(member) === 'stuck' ||
      // One that ended after a useful life says nothing against its revision.
      (member.state === 'dead' && now - createdAt(member.sandbox) < view.readinessGraceMs),
  )
  if (!failed) return { revision, isWorking }
  const because = failed.state === 'dead' ? 'dead' : 'stuck'
  return { revision, isWorking, failure: { ...complaintOf(failed), because, uid: failed.sandbox.metadata.uid ?? '' } }
}

function complaintOf({ trouble, sandbox, state }: Appraised): Complaint {
  if (trouble) return { reason: trouble.reason, message: trouble.message }
  const ready = findCondition(sandbox.status?.conditions, conditionTypes.ready)
  if (ready) return { reason: ready.reason, message: ready.message }
  return state === 'dead'
    ? { reason: 'SandboxEnded', message: 'The sandbox ended before it was claimed.' }
    : { reason: 'NotReadyInTime', message: 'The sandbox did not become ready in time.' }
}

function creates(
  view: PoolView,
  kept: readonly Appraised[],
  history: PoolHistory,
  removals: Removals,
  now: number,
): { create: number; limitedUntil?: number } {
  const missing = view.desired - kept.length - view.issuedCreates
  if (missing <= 0 || view.recipe.kind === 'obstacle') return { create: 0 }
  const restUntil = Math.max(history.retryAt, history.refusal?.retryAt ?? 0)
  if (restUntil > now) return { create: 0, limitedUntil: restUntil }
  const creating = kept.filter(({ state }) => state === 'creating')
  const freshCreating = creating.filter(({ isFresh }) => isFresh).length + view.issuedCreates
  const wanted = Math.min(
    missing,
    view.maxCreating - creating.length - view.issuedCreates,
    history.failures > 0 ? 1 - freshCreating : Infinity,
  )
  const create = Math.max(0, Math.min(wanted, view.allowance.creates, removals.left))
  if (create >= wanted) return { create }
  return { create, limitedUntil: create < removals.left ? view.allowance.nextAt : now }
}

function memberTimes(view: PoolView, kept: readonly Appraised[], now: number): (number | undefined)[] {
  return kept.map((member) => {
    if (member.state !== 'creating') return undefined
    const tooLongAt = stuckAt(view, member)
    return tooLongAt > now ? tooLongAt : now + heldRecheckMs
  })
}

function earliest(times: readonly (number | undefined)[]): number | undefined {
  let first: number | undefined
  for (const time of times) if (time !== undefined && (first === undefined || time < first)) first = time
  return first
}
