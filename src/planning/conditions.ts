import type { Condition } from '../api/schema.ts'

export interface NextCondition {
  readonly type: string
  readonly status: Condition['status']
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number | undefined
}

/**
 * Puts one condition into a list of conditions. `lastTransitionTime` moves only when the status changes, and the very
 * same array is returned when nothing changed, so that callers can tell by identity. `now` is in milliseconds.
 */
export function setCondition(existing: Condition[] | undefined, next: NextCondition, now: number): Condition[] {
  const conditions = existing ?? []
  const before = findCondition(conditions, next.type)
  if (before && sameCondition(before, next)) return conditions
  const { type, status, reason, message, observedGeneration } = next
  const condition: Condition = {
    type,
    status,
    reason,
    message,
    lastTransitionTime:
      before?.status === status ? before.lastTransitionTime : new Date(now).toISOString().replace(/\.\d+Z$/, 'Z'),
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
  }
  return before ? conditions.map((each) => (each === before ? condition : each)) : [...conditions, condition]
}

/** The condition of a type, if there is one. */
export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type)
}

function sameCondition(before: Condition, next: NextCondition): boolean {
  return (
    before.status === next.status &&
    before.reason === next.reason &&
    before.message === next.message &&
    before.observedGeneration === next.observedGeneration
  )
}
