import { nameHash, poolHash } from '../api/hash.ts'
import { controllerOf, type KubeObject } from '../kube/object.ts'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxWarmPool } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import type { IndexFunction } from '../runtime/store.ts'

/** Index names. Values that name something in a namespace are written `namespace/value`. */
export const indexes = {
  /** UID of the controller owner. */
  controllerUid: 'controllerUid',
  /** `namespace/<pool hash>` of unclaimed Sandboxes. */
  pool: 'pool',
  /** `namespace/<template-ref hash>`. */
  templateRefHash: 'templateRefHash',
  /** `namespace/<template name>` of the template that a pool refers to. */
  template: 'template',
  /** `namespace/<kind>/<pool name>` of the pool that a claim names. */
  claimPool: 'claimPool',
  /** Object UID. */
  uid: 'uid',
  /** Namespace of a claim. */
  namespace: 'namespace',
  /** `namespace/<hash of the name>` of Sandboxes. */
  nameHash: 'nameHash',
  /** `namespace/<pool hash>` of pools: both kinds share one space. */
  poolHash: 'poolHash',
} as const

const byLabel =
  (label: string) =>
  (object: KubeObject): readonly string[] => {
    const value = object.metadata.labels?.[label]
    return value === undefined ? [] : [`${object.metadata.namespace}/${value}`]
  }

/** UID of the controller owner; fits every kind. */
export function byController(object: KubeObject): readonly string[] {
  const owner = controllerOf(object)
  return owner ? [owner.uid] : []
}

export const sandboxIndexes: Record<string, IndexFunction<Sandbox>> = {
  [indexes.controllerUid]: byController,
  [indexes.pool]: byLabel(labels.warmPool),
  [indexes.templateRefHash]: byLabel(labels.templateRefHash),
  [indexes.nameHash]: ({ metadata: { namespace = '', name = '' } }) => [`${namespace}/${nameHash(name)}`],
}

export const claimIndexes: Record<string, IndexFunction<SandboxClaim>> = {
  [indexes.uid]: (claim) => (claim.metadata.uid ? [claim.metadata.uid] : []),
  [indexes.namespace]: ({ metadata }) => [metadata.namespace ?? ''],
  [indexes.claimPool]: (claim) => [
    `${claim.metadata.namespace}/${claim.spec.warmPoolRef.kind ?? 'SandboxWarmPool'}/${claim.spec.warmPoolRef.name}`,
  ],
}

const byPoolHash =
  (kind: 'SandboxWarmPool' | 'SandboxSet') =>
  ({ metadata: { namespace = '', name = '' } }: KubeObject): readonly string[] => [
    `${namespace}/${poolHash(kind, name)}`,
  ]

export const warmPoolIndexes: Record<string, IndexFunction<SandboxWarmPool>> = {
  [indexes.poolHash]: byPoolHash('SandboxWarmPool'),
  [indexes.template]: (pool) => [`${pool.metadata.namespace}/${pool.spec.sandboxTemplateRef.name}`],
}

export const setIndexes: Record<string, IndexFunction<SandboxSet>> = {
  [indexes.poolHash]: byPoolHash('SandboxSet'),
  [indexes.template]: (set) => (set.spec.templateRef ? [`${set.metadata.namespace}/${set.spec.templateRef.name}`] : []),
}
