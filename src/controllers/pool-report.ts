import type { Sandbox } from '../api/kinds.ts'
import type { Condition } from '../api/schema.ts'
import { conditionTypes } from '../api/vocabulary.ts'
import type { KubeObject } from '../kube/object.ts'
import { findCondition } from '../planning/conditions.ts'
import type { PoolPlan } from '../planning/plan-pool.ts'
import type { PoolStatus } from '../planning/pool-status.ts'
import { poolOwner, type Pool } from '../planning/pools.ts'
import type { ControllerDependencies } from './dependencies.ts'
import type { GatheredPool } from './pool-gather.ts'

/** One log line and one event for each sort of change, with counts. */
export function reportChanges(
  pool: Pool,
  plan: PoolPlan,
  { created, removed }: { created: number; removed: PoolPlan['remove'] },
  { events, log }: ControllerDependencies,
): void {
  const { namespace, name } = pool.metadata
  if (created > 0) {
    log.info({ namespace, pool: name, created, planned: plan.create }, 'created sandboxes')
    events.record(reference(pool), 'Normal', 'SandboxesCreated', `Created ${counted(created)}.`)
  }
  if (removed.length > 0) {
    const reasons = new Map<string, number>()
    for (const { because } of removed) reasons.set(because, (reasons.get(because) ?? 0) + 1)
    const why = [...reasons].map(([because, count]) => `${count} ${because}`).join(', ')
    log.info({ namespace, pool: name, removed: Object.fromEntries(reasons) }, 'removed sandboxes')
    events.record(reference(pool), 'Normal', 'SandboxesRemoved', `Removed ${counted(removed.length)}: ${why}.`)
  }
}

/** Events for what a published status says differently from the one before. */
export function reportStatus(
  pool: Pool,
  before: PoolStatus | undefined,
  now: PoolStatus,
  { events }: ControllerDependencies,
): void {
  const was = progressing(before)
  const is = progressing(now)
  if (is?.status === 'False' && (was?.status !== 'False' || was.reason !== is.reason)) {
    events.record(reference(pool), 'Warning', 'PoolNotProgressing', `${is.reason}: ${is.message}`)
  }
  if (is?.status === 'True' && was?.status === 'False') {
    events.record(reference(pool), 'Normal', 'PoolProgressing', is.message)
  }
  const from = revisionOf(before)
  const to = revisionOf(now)
  if (from !== undefined && to !== undefined && from !== to) {
    events.record(reference(pool), 'Normal', 'RollingUpdate', `Rolling update from revision ${from} to ${to}.`)
  }
}

/** Each Sandbox that passes itself off as the pool's is told of once. */
export function reportUnproven({ view, notes, unproven }: GatheredPool, deps: ControllerDependencies): void {
  const { namespace = '', name: pool = '' } = view.pool.metadata
  for (const sandbox of unproven) {
    if (notes.reported.has(uidOf(sandbox))) continue
    const message =
      `Sandbox ${sandbox.metadata.name} bears the marks of this pool, but its proof of origin does not match: ` +
      'somebody else made it, or changed it since. It is neither counted nor handed out. Delete it.'
    deps.log.warn({ namespace, pool, sandbox: sandbox.metadata.name }, 'sandbox without a valid proof of origin')
    deps.events.record(reference(view.pool), 'Warning', 'UnprovenSandbox', message)
    deps.metrics.unprovenSandboxes.inc({ namespace, pool })
  }
  notes.reported = new Set(unproven.map(uidOf))
}

/** A pool from a list bears no kind, and an event has to name it. */
function reference(pool: Pool): KubeObject {
  const { apiVersion, kind } = poolOwner(pool)
  return { apiVersion, kind, metadata: pool.metadata }
}

function counted(count: number): string {
  return count === 1 ? '1 sandbox' : `${count} sandboxes`
}

function progressing(status: PoolStatus | undefined): Condition | undefined {
  return findCondition(status?.conditions, conditionTypes.progressing)
}

function revisionOf(status: PoolStatus | undefined): string | undefined {
  return status && 'updateRevision' in status ? status.updateRevision : undefined
}

function uidOf(sandbox: Sandbox): string {
  return sandbox.metadata.uid ?? ''
}
