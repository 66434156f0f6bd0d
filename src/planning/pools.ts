import { nameHash, poolHash } from '../api/hash.ts'
import {
  sandboxSetKind,
  sandboxWarmPoolKind,
  type SandboxSet,
  type SandboxTemplate,
  type SandboxWarmPool,
} from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { apiVersionOf, type OwnerReference } from '../kube/object.ts'
import { implicitTemplate } from './blueprint.ts'

export type Pool = SandboxWarmPool | SandboxSet

export type PoolKind = 'SandboxWarmPool' | 'SandboxSet'

/** Told by the spec: objects from a list do not bear their kind. */
export function isSandboxSet(pool: Pool): pool is SandboxSet {
  return !('sandboxTemplateRef' in pool.spec)
}

export function poolKindOf(pool: Pool): PoolKind {
  return isSandboxSet(pool) ? 'SandboxSet' : 'SandboxWarmPool'
}

/** Value of the label that marks the pool's unclaimed stock. */
export function poolHashOf(pool: Pool): string {
  return poolHash(poolKindOf(pool), pool.metadata.name ?? '')
}

/** `status.selector`, for the scale subresource. */
export function poolSelector(pool: Pool): string {
  return `${labels.warmPool}=${poolHashOf(pool)}`
}

/** The owner reference that makes the pool the controller of a Sandbox. */
export function poolOwner(pool: Pool): OwnerReference {
  const kind = isSandboxSet(pool) ? sandboxSetKind : sandboxWarmPoolKind
  return {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    name: pool.metadata.name ?? '',
    uid: pool.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}

/** Name of the SandboxTemplate that the pool refers to; undefined for a set with an inline template. */
export function referencedTemplate(pool: Pool): string | undefined {
  return isSandboxSet(pool) ? pool.spec.templateRef?.name : pool.spec.sandboxTemplateRef.name
}

/**
 * The template that the pool's sandboxes are made from, given the SandboxTemplate it refers to. Volumes of a set stand
 * in for those of the template it refers to. Undefined while the referenced template is missing.
 */
export function templateOf(pool: Pool, referenced: SandboxTemplate | undefined): SandboxTemplate | undefined {
  if (!isSandboxSet(pool)) return referenced
  if (!pool.spec.templateRef) return implicitTemplate(pool)
  const { volumeClaimTemplates } = pool.spec
  if (!referenced || !volumeClaimTemplates?.length) return referenced
  return { ...referenced, spec: { ...referenced.spec, volumeClaimTemplates } }
}

/** The template-ref hash of everything that is made for the pool. Known without the template itself. */
export function templateRefHashOf(pool: Pool): string {
  return nameHash(referencedTemplate(pool) ?? `${sandboxSetKind.kind}/${pool.metadata.name}`)
}
