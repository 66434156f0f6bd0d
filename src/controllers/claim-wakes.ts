import type { SandboxClaim } from '../api/kinds.ts'
import { controllerOf, keyOf, type KubeObject } from '../kube/object.ts'
import type { Change } from '../runtime/informer.ts'
import type { WorkQueue } from '../runtime/work-queue.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'

/**
 * Queues the claims that a change elsewhere may matter to: the claim's sandbox, a sandbox of its name, its pool, the
 * template behind it, its namespace's mode, the configuration. Status writes of pools wake nobody.
 */
export function wakeClaims(deps: ControllerDependencies, queue: WorkQueue): void {
  const { claims, sandboxes, warmPools, sets, templates, namespaces } = deps.informers

  const wakeOwner = (sandbox: KubeObject) => {
    const owner = controllerOf(sandbox)
    if (owner?.kind === 'SandboxClaim') queue.add(`${sandbox.metadata.namespace}/${owner.name}`)
  }
  sandboxes.onChange((change) => {
    wakeOwner(change.object)
    if (change.kind === 'updated') wakeOwner(change.previous)
    if (change.kind === 'deleted' && claims.store.get(keyOf(change.object))) queue.add(keyOf(change.object))
  })

  const wakeClaimsOf = (poolKind: string, pool: KubeObject, isConcerned: (claim: SandboxClaim) => boolean) => {
    const { namespace, name } = pool.metadata
    for (const claim of claims.store.indexed(indexes.claimPool, `${namespace}/${poolKind}/${name}`)) {
      if (isConcerned(claim)) queue.add(keyOf(claim))
    }
  }
  const followPools = (poolKind: string) => (change: Change<KubeObject>) => {
    if (hasNewSpec(change)) wakeClaimsOf(poolKind, change.object, isUnbound)
  }
  warmPools.onChange(followPools('SandboxWarmPool'))
  sets.onChange(followPools('SandboxSet'))

  // Bound claims too: the template's Pod metadata is theirs.
  templates.onChange((change) => {
    if (!hasNewSpec(change)) return
    const template = keyOf(change.object)
    for (const pool of warmPools.store.indexed(indexes.template, template))
      wakeClaimsOf('SandboxWarmPool', pool, anyClaim)
    for (const set of sets.store.indexed(indexes.template, template)) wakeClaimsOf('SandboxSet', set, anyClaim)
  })

  const wakeUnbound = (isConcerned: (claim: SandboxClaim) => boolean) => {
    for (const claim of claims.store.values()) if (isUnbound(claim) && isConcerned(claim)) queue.add(keyOf(claim))
  }
  namespaces.onChange((change) => {
    if (change.kind === 'updated') wakeUnbound((claim) => claim.metadata.namespace === change.object.metadata.name)
  })
  deps.onConfigChange(() => wakeUnbound(anyClaim))
}

function hasNewSpec(change: Change<KubeObject>): boolean {
  if (change.kind !== 'updated') return true
  const { object, previous } = change
  return (
    object.metadata.generation !== previous.metadata.generation ||
    object.metadata.deletionTimestamp !== previous.metadata.deletionTimestamp
  )
}

function isUnbound(claim: SandboxClaim): boolean {
  return claim.status?.sandbox?.name === undefined
}

function anyClaim(): boolean {
  return true
}
