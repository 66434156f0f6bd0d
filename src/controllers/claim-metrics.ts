import { annotations, conditionTypes, labels } from '../api/vocabulary.ts'
import { findCondition } from '../planning/conditions.ts'
import { launchTypeOf, type ClaimPlan, type ClaimView } from '../planning/plan-claim.ts'
import type { ControllerDependencies } from './dependencies.ts'

/** Records, once for each claim, how long it took to become Ready and what it was given. */
export function createClaimMetrics({ metrics, clock, informers }: ControllerDependencies) {
  /** First sight of claims that are not Ready yet, by UID. */
  const firstSeen = new Map<string, number>()
  informers.claims.onChange(({ kind, object }) => {
    if (kind === 'deleted') firstSeen.delete(object.metadata.uid ?? '')
  })
  return {
    /** To be called after each step; `now` is in milliseconds by the API server's clock. */
    observe(plan: ClaimPlan, { claim, owned }: ClaimView, now: number): void {
      const sandbox = owned[0]
      if (claim === undefined) return
      const uid = claim.metadata.uid ?? ''
      const wasReady = findCondition(claim.status?.conditions, conditionTypes.ready)?.status === 'True'
      if (!wasReady && !firstSeen.has(uid)) firstSeen.set(uid, clock.now())
      const isReady =
        plan.kind === 'publish' && findCondition(plan.status.conditions, conditionTypes.ready)?.status === 'True'
      if (wasReady || !isReady || sandbox === undefined) return

      const launchType = launchTypeOf(sandbox)
      const template = sandbox.metadata.annotations?.[annotations.templateRef] ?? ''
      const latency = { launch_type: launchType, sandbox_template: template }
      const seen = firstSeen.get(uid)
      firstSeen.delete(uid)
      if (seen !== undefined) metrics.claimControllerStartupLatency.observe(latency, clock.now() - seen)
      const admitted = Date.parse(claim.metadata.annotations?.[annotations.webhookFirstObservedAt] ?? '')
      if (admitted <= now) metrics.claimStartupLatency.observe(latency, now - admitted)
      const requested = Date.parse(claim.metadata.annotations?.[annotations.clientFirstRequestedAt] ?? '')
      if (requested <= now) metrics.clientClaimStartupLatency.observe(latency, now - requested)
      metrics.claimCreations.inc({
        namespace: claim.metadata.namespace ?? '',
        sandbox_template: template,
        launch_type: launchType,
        warmpool_name: claim.spec.warmPoolRef.name,
        pod_condition: 'ready',
        created_by: claim.metadata.labels?.[labels.createdBy] ?? 'unknown',
      })
    },
  }
}
