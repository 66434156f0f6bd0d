import type { Sandbox } from '../api/kinds.ts'
import { conditionTypes, sandboxReasons } from '../api/vocabulary.ts'
import { findCondition } from './conditions.ts'

/**
 * - `available`: Ready with an address.
 * - `creating`: not Ready, for whatever reason.
 * - `paused`: suspended by hand. Stock, but neither on its way nor of use.
 * - `dead`: finished, failed, or due to end at some time, which no pool ever asks for. It is of no use to anyone.
 */
export type MemberState = 'available' | 'creating' | 'paused' | 'dead'

const endedPhases: ReadonlySet<string | undefined> = new Set(['Succeeded', 'Failed'])
const endedReasons: ReadonlySet<string | undefined> = new Set([
  sandboxReasons.podFailed,
  sandboxReasons.podSucceeded,
  sandboxReasons.expired,
])

/** The state of a sandbox that is a pool's. */
export function memberState(sandbox: Sandbox): MemberState {
  const { status, spec } = sandbox
  const ready = findCondition(status?.conditions, conditionTypes.ready)
  if (findCondition(status?.conditions, conditionTypes.finished)?.status === 'True') return 'dead'
  if (endedPhases.has(status?.phase)) return 'dead'
  if (ready?.status !== 'True' && endedReasons.has(ready?.reason)) return 'dead'
  // The claim that got it would find its work cut short, by whoever wrote the time.
  if (spec.shutdownTime !== undefined) return 'dead'
  if (spec.operatingMode === 'Suspended') return 'paused'
  return ready?.status === 'True' && (status?.podIPs?.length ?? 0) > 0 ? 'available' : 'creating'
}

/** Since when the sandbox has not been Ready: the later of its creation and the moment Ready was lost, in milliseconds. */
export function notReadySince(sandbox: Sandbox): number {
  const ready = findCondition(sandbox.status?.conditions, conditionTypes.ready)
  const lost = ready === undefined ? 0 : Date.parse(ready.lastTransitionTime) || 0
  return Math.max(createdAt(sandbox), lost)
}

/** Milliseconds since the epoch. */
export function createdAt(sandbox: Sandbox): number {
  return Date.parse(sandbox.metadata.creationTimestamp ?? '') || 0
}
