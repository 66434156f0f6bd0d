import {
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxClaim,
  type SandboxTemplate,
} from '../api/kinds.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import type { KubeObject, ObjectRef, Resource } from '../kube/object.ts'
import { isOurs } from '../planning/claim-ownership.ts'
import type { ClaimPlan, Confirmation } from '../planning/claim-view.ts'
import { referencedTemplate, templateOf } from '../planning/pools.ts'
import type { Known, Pool } from '../policy/rule.ts'
import type { ClaimSources } from './claim-gather.ts'

/** What one pass has learnt from the API server itself; it takes precedence over the caches. */
export interface LiveReads {
  readonly confirmed: Set<Confirmation>
  named?: Known<Sandbox>
  pool?: Known<Pool>
  template?: Known<SandboxTemplate>
  ofName?: Known<Sandbox>
  /** How often a sandbox that was to be adopted turned out to have changed. */
  lostRaces: number
  /** What the API server said when it refused a Sandbox for want of quota. */
  exceededQuota?: string
}

export function noReads(): LiveReads {
  return { confirmed: new Set(), lostRaces: 0 }
}

/** Reads from the API server what the plan wants to be sure of. */
export async function confirm(
  plan: Extract<ClaimPlan, { kind: 'confirm' }>,
  claim: SandboxClaim,
  live: LiveReads,
  sources: ClaimSources,
): Promise<void> {
  const { client } = sources.deps
  const { namespace = '', name = '' } = claim.metadata
  switch (plan.what) {
    case 'own-sandbox': {
      const { uid = '', name: own = '' } = plan.sandbox.metadata
      const read = await readSandbox({ namespace, name: own }, claim, sources)
      if (read.kind !== 'found' || read.value.metadata.uid !== uid) sources.memory.forgetSandbox(uid)
      break
    }
    case 'named-sandbox': {
      const read = await readSandbox({ namespace, name: claim.status?.sandbox?.name ?? '' }, claim, sources)
      live.named =
        read.kind === 'found' && !isOurs(read.value, claim, sources.deps.originKeys()) ? { kind: 'missing' } : read
      break
    }
    case 'pool-and-template': {
      const { kind, name: poolName } = claim.spec.warmPoolRef
      const resource: Resource<Pool> = kind === 'SandboxSet' ? sandboxSetKind : sandboxWarmPoolKind
      live.pool = await readLive(client, resource, { namespace, name: poolName })
      live.template = await liveTemplate(live.pool, client)
      break
    }
    case 'sandbox-of-name':
      live.ofName = await readSandbox({ namespace, name }, claim, sources)
      break
    default:
      return plan satisfies never
  }
  live.confirmed.add(plan.what)
}

/** The object as the API server has it now; undefined when it has none. */
export async function readIfThere<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  ref: ObjectRef,
): Promise<T | undefined> {
  try {
    return await client.get(resource, ref)
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  }
}

/** A Sandbox that turns out to be the claim's is remembered, ahead of the cache. */
async function readSandbox(
  ref: ObjectRef,
  claim: SandboxClaim,
  { deps, memory }: ClaimSources,
): Promise<Known<Sandbox>> {
  const read = await readLive(deps.client, sandboxKind, ref)
  if (read.kind === 'found' && isOurs(read.value, claim, deps.originKeys())) {
    memory.remember(claim.metadata.uid ?? '', read.value, deps.clock.now())
  }
  return read
}

async function readLive<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  ref: ObjectRef,
): Promise<Known<T>> {
  const value = await readIfThere(client, resource, ref)
  return value === undefined ? { kind: 'missing' } : { kind: 'found', value }
}

async function liveTemplate(pool: Known<Pool>, client: KubeClient): Promise<Known<SandboxTemplate>> {
  if (pool.kind !== 'found') return pool
  const name = referencedTemplate(pool.value)
  const { namespace = '' } = pool.value.metadata
  const referenced =
    name === undefined ? undefined : await readIfThere(client, sandboxTemplateKind, { namespace, name })
  const value = templateOf(pool.value, referenced)
  return value === undefined ? { kind: 'missing' } : { kind: 'found', value }
}
