import type { Sandbox } from '../api/kinds.ts'
import { annotations, conditionTypes } from '../api/vocabulary.ts'
import { findCondition } from '../planning/conditions.ts'
import { launchTypeOf } from '../planning/launch-type.ts'
import type { ControllerDependencies } from './dependencies.ts'

/** Transitions are recorded in whole seconds, and by the API server's clock as far as we know it. */
const initialFalseWithinMs = 5_000

/**
 * Notes how long it took from the creation of a Sandbox until it was ready, when that is the first time. `sandbox` is as
 * it was before the status that says Ready was written.
 */
export function measureFirstReady(sandbox: Sandbox, { client, clock, metrics }: ControllerDependencies): void {
  if (!isNeverYetReady(sandbox)) return
  const { namespace = '' } = sandbox.metadata
  const latencyMs = clock.now() + client.serverClockOffsetMs() - creationOf(sandbox)
  metrics.sandboxCreationLatency.observe(
    {
      namespace,
      launch_type: launchTypeOf(sandbox),
      sandbox_template: sandbox.metadata.annotations?.[annotations.templateRef] ?? '',
    },
    Math.max(0, latencyMs),
  )
}

/** Its Ready condition is absent, or False since it was created. */
function isNeverYetReady(sandbox: Sandbox): boolean {
  const ready = findCondition(sandbox.status?.conditions, conditionTypes.ready)
  if (!ready) return true
  return ready.status !== 'True' && Date.parse(ready.lastTransitionTime) - creationOf(sandbox) <= initialFalseWithinMs
}

function creationOf(sandbox: Sandbox): number {
  return Date.parse(sandbox.metadata.creationTimestamp ?? '')
}
