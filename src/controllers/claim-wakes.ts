import type { SandboxClaim } from '../api/kinds.ts'
import { claimReasons, conditionTypes, labels } from '../api/vocabulary.ts'
import { controllerOf, keyOf, type KubeObject } from '../kube/object.ts'
import { findCondition } from '../planning/conditions.ts'
import type { Change } from '../runtime/informer.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'

/**
 * Wakes the claims, by key, that a change elsewhere may matter to: the claim's sandbox, a sandbox of its name, its pool,
 * the template behind it, its namespace's mode and quota, the configuration. Status writes of pools wake nobody.
 */
export function wakeClaims(deps: ControllerDependencies, wake: (key: string) => void): void {
  const { claims, sandboxes, warmPools, sets, templates, namespaces } = deps.informers

  const wakeOwner = (sandbox: KubeObject) => {
    const owner = controllerOf(sandbox)
    if (owner?.kind === 'SandboxClaim') wake(`${sandbox.metadata.namespace}/${owner.name}`)
  }
  sandboxes.onChange((change) => {
    wakeOwner(change.object)
    if (change.kind === 'updated') wakeOwner(change.previous)
    if (change.kind === 'deleted' && claims.store.get(keyOf(change.object))) wake(keyOf(change.object))
  })

  const wakeClaimsOf = (poolKind: string, pool: KubeObject, isConcerned: (claim: SandboxClaim) => boolean) => {
    const { namespace, name } = pool.metadata
    for (const claim of claims.store.indexed(indexes.claimPool, `${namespace}/${poolKind}/${name}`)) {
      if (isConcerned(claim)) wake(keyOf(claim))
    }
  }
  const followPools = (poolKind: string) => (change: Change<KubeObject>) => {
    if (hasNewSpec(change)) wakeClaimsOf(poolKind, change.object, isUnsettled)
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

  const wakeUnsettled = (of: Iterable<SandboxClaim>, isConcerned: (claim: SandboxClaim) => boolean) => {
    for (const claim of of) if (isConcerned(claim)) wake(keyOf(claim))
  }
  const claimsIn = (namespace: string) => claims.store.indexed(indexes.namespace, namespace)
  namespaces.onChange((change) => {
    if (change.kind === 'deleted' || (change.kind === 'updated' && modeOf(change.object) === modeOf(change.previous)))
      return
    wakeUnsettled(claimsIn(change.object.metadata.name ?? ''), isUnsettled)
  })
  claims.onChange(({ kind, object }) => {
    if (deps.config().claims.maxPerNamespace === undefined) return
    // What one claim gives up of the namespace's quota, another may have.
    if (kind === 'deleted' || isFinished(object)) wakeUnsettled(claimsIn(object.metadata.namespace ?? ''), isOverQuota)
  })
  deps.onConfigChange(() => wakeUnsettled(claims.store.values(), isUnsettled))
}

function hasNewSpec(change: Change<KubeObject>): boolean {
  if (change.kind !== 'updated') return true
  const { object, previous } = change
  return (
    object.metadata.generation !== previous.metadata.generation ||
    object.metadata.deletionTimestamp !== previous.metadata.deletionTimestamp
  )
}

/** Not ready: something that is not about its sandbox may change that. */
function isUnsettled(claim: SandboxClaim): boolean {
  return readyOf(claim)?.status !== 'True'
}

function isOverQuota(claim: SandboxClaim): boolean {
  return readyOf(claim)?.reason === claimReasons.quotaExceeded
}

function isFinished({ status }: SandboxClaim): boolean {
  return findCondition(status?.conditions, conditionTypes.finished)?.status === 'True'
}

function readyOf({ status }: SandboxClaim) {
  return findCondition(status?.conditions, conditionTypes.ready)
}

function modeOf({ metadata }: KubeObject): string | undefined {
  return metadata.labels?.[labels.namespaceMode]
}

function anyClaim(): boolean {
  return true
}
