import type { Sandbox, SandboxClaim } from '../api/kinds.ts'
import { annotations, conditionTypes, labels } from '../api/vocabulary.ts'
import type { ClaimPlan, ClaimView } from '../planning/claim-view.ts'
import { findCondition } from '../planning/conditions.ts'
import { launchTypeOf } from '../planning/launch-type.ts'
import type { ControllerDependencies } from './dependencies.ts'

export interface ClaimMetrics {
  /** A Sandbox was adopted or created for the claim. */
  served(claim: SandboxClaim, sandbox: Sandbox): void
  /** A plan was carried out to its end; `now` is in milliseconds by the API server's clock. */
  ended(plan: ClaimPlan, view: ClaimView, now: number): void
}

/** Records, once for each claim, what it was given and how long it took to become Ready. */
export function createClaimMetrics({ metrics, clock, informers }: ControllerDependencies): ClaimMetrics {
  /** First sight of claims that have no sandbox yet, by UID. Later losses of Ready are not startups. */
  const firstSeen = new Map<string, number>()
  informers.claims.onChange(({ kind, object }) => {
    const uid = object.metadata.uid ?? ''
    if (kind === 'added' && object.status?.sandbox === undefined) firstSeen.set(uid, clock.now())
    if (kind === 'deleted') firstSeen.delete(uid)
  })
  return {
    served(claim, sandbox) {
      metrics.claimCreations.inc({
        namespace: claim.metadata.namespace ?? '',
        sandbox_template: templateOf(sandbox),
        launch_type: launchTypeOf(sandbox),
        warmpool_name: claim.spec.warmPoolRef.name,
        pod_condition: isReady(sandbox.status) ? 'ready' : 'not_ready',
        created_by: claim.metadata.labels?.[labels.createdBy] ?? 'unknown',
      })
    },
    ended(plan, { claim, owned: [sandbox] }, now) {
      const uid = claim?.metadata.uid ?? ''
      const seen = firstSeen.get(uid)
      if (seen === undefined || !claim || !sandbox || plan.kind !== 'publish' || !isReady(plan.status)) return
      firstSeen.delete(uid)
      const latency = { launch_type: launchTypeOf(sandbox), sandbox_template: templateOf(sandbox) }
      metrics.claimControllerStartupLatency.observe(latency, clock.now() - seen)
      const admitted = Date.parse(claim.metadata.annotations?.[annotations.webhookFirstObservedAt] ?? '')
      if (admitted <= now) metrics.claimStartupLatency.observe(latency, now - admitted)
      const requested = Date.parse(claim.metadata.annotations?.[annotations.clientFirstRequestedAt] ?? '')
      if (requested <= now) metrics.clientClaimStartupLatency.observe(latency, now - requested)
    },
  }
}

function isReady(status: Sandbox['status'] | SandboxClaim['status']): boolean {
  return findCondition(status?.conditions, conditionTypes.ready)?.status === 'True'
}

function templateOf(sandbox: Sandbox): string {
  return sandbox.metadata.annotations?.[annotations.templateRef] ?? ''
}
