import { sandboxSetKind, sandboxWarmPoolKind } from '../api/kinds.ts'
import { conditionTypes } from '../api/vocabulary.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Resource } from '../kube/object.ts'
import { findCondition, setCondition } from '../planning/conditions.ts'
import type { TemplateIdentity } from '../planning/network-policy.ts'
import { isSandboxSet, type Pool } from '../planning/pools.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { poolsOf } from './template-gather.ts'

/** Why the sandboxes of a template are without the NetworkPolicy they should have. */
export interface Complaint {
  readonly reason: 'NetworkPolicyNameTaken' | 'NetworkPolicyRefused'
  readonly message: string
}

/**
 * Tells the pools of a template, by condition and event, what is wrong with its NetworkPolicy, or that it no longer is.
 * A pool that never had trouble gets no condition, so that none costs a write.
 */
export async function reportToPools(
  identity: TemplateIdentity,
  complaint: Complaint | undefined,
  deps: ControllerDependencies,
): Promise<void> {
  await Promise.all(poolsOf(identity, deps.informers).map((pool) => reportToPool(pool, complaint, deps)))
}

async function reportToPool(
  pool: Pool,
  complaint: Complaint | undefined,
  { client, clock, events }: ControllerDependencies,
): Promise<void> {
  const type = conditionTypes.networkIsolated
  const before = findCondition(pool.status?.conditions, type)
  if (!complaint && !before) return
  const { uid, resourceVersion, generation, namespace = '', name = '' } = pool.metadata
  const said = complaint ?? {
    reason: 'NetworkAsAsked',
    message: 'The network of the sandboxes is as their template asks.',
  }
  const conditions = setCondition(
    pool.status?.conditions,
    { type, status: complaint ? 'False' : 'True', ...said, observedGeneration: generation },
    clock.now() + client.serverClockOffsetMs(),
  )
  if (conditions === pool.status?.conditions) return
  const kind: Resource = isSandboxSet(pool) ? sandboxSetKind : sandboxWarmPoolKind
  try {
    const patch = { metadata: { uid, resourceVersion }, status: { conditions } }
    await client.patch(kind, { namespace, name }, patch, { type: 'merge', subresource: 'status' })
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return
    throw error
  }
  if (complaint && before?.reason !== complaint.reason) {
    events.record(pool, 'Warning', complaint.reason, complaint.message)
  }
}
