import { canonicalJson } from '../api/hash.ts'
import type { Sandbox } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import type { KubeObject, OwnerReference } from '../kube/object.ts'
import type { Actor } from './rule.ts'

const poolKinds: ReadonlySet<string> = new Set(['SandboxWarmPool', 'SandboxSet'])

/** Whether a reference names a pool. The API version is not looked at: a false one must not slip through. */
export function isPool({ kind }: OwnerReference): boolean {
  return poolKinds.has(kind)
}

/** Whether a reference names a pool or a claim, under whatever API version. */
export function isPoolOrClaim(owner: OwnerReference): boolean {
  return isPool(owner) || owner.kind === 'SandboxClaim'
}

/** Whether a pool or a claim owns the object, or its labels say so. */
export function isManaged(sandbox: Sandbox | undefined): boolean {
  const { ownerReferences, labels: own } = sandbox?.metadata ?? {}
  return (
    (ownerReferences ?? []).some(isPoolOrClaim) ||
    [labels.warmPool, labels.setPool, labels.claimUid].some((key) => own?.[key] !== undefined)
  )
}

export interface OwnerChange {
  readonly owner: OwnerReference
  readonly how: 'added' | 'changed' | 'removed'
}

/**
 * The differences in owner references that `actor` had no business to make, among those that `concerns` picks.
 * The collector may remove a reference or stop it from blocking its owner's deletion; it never adds one.
 */
export function forbiddenOwnerChanges(
  before: KubeObject | undefined,
  after: KubeObject,
  actor: Actor,
  concerns: (owner: OwnerReference) => boolean,
): OwnerChange[] {
  const old = before?.metadata.ownerReferences ?? []
  const now = after.metadata.ownerReferences ?? []
  const isSame = (a: OwnerReference, b: OwnerReference) => comparable(a, actor) === comparable(b, actor)
  const introduced = now
    .filter((owner) => concerns(owner) && !old.some((known) => isSame(known, owner)))
    .map((owner) => ({
      owner,
      how: old.some(({ uid }) => uid === owner.uid) ? ('changed' as const) : ('added' as const),
    }))
  if (actor === 'collector') return introduced
  const removed = old
    .filter((owner) => concerns(owner) && !now.some(({ uid }) => uid === owner.uid))
    .map((owner) => ({ owner, how: 'removed' as const }))
  return [...introduced, ...removed]
}

function comparable({ blockOwnerDeletion, ...owner }: OwnerReference, actor: Actor): string {
  return canonicalJson(actor === 'collector' ? owner : { ...owner, blockOwnerDeletion: blockOwnerDeletion ?? false })
}
