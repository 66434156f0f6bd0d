import { nameHash } from '../api/hash.ts'
import { sandboxKind, type Sandbox } from '../api/kinds.ts'
import { annotations, domains, labels } from '../api/vocabulary.ts'
import { apiVersionOf, controllerOf, type KubeObject, type OwnerReference } from '../kube/object.ts'

/** Who has a Sandbox at present, by its controller owner reference. */
export type Tenure = 'pool' | 'claim' | 'none'

export function tenureOf(sandbox: Sandbox): Tenure {
  const owner = controllerOf(sandbox)
  const group = owner?.apiVersion.split('/')[0]
  if (owner?.kind === 'SandboxClaim' && group === domains.extensions) return 'claim'
  if (owner?.kind === 'SandboxWarmPool' && group === domains.extensions) return 'pool'
  if (owner?.kind === 'SandboxSet' && group === domains.kruise) return 'pool'
  return 'none'
}

/** Made by a person or program of their own: neither stock of a pool, orphaned or not, nor a claim's. */
export function isStandAlone(sandbox: Sandbox): boolean {
  const marks = sandbox.metadata.labels ?? {}
  return tenureOf(sandbox) === 'none' && marks[labels.warmPool] === undefined && marks[labels.claimUid] === undefined
}

/** True when this very Sandbox, by UID, controls the object. */
export function isOurs(object: KubeObject, sandbox: Sandbox): boolean {
  const owner = controllerOf(object)
  return owner !== undefined && owner.uid === sandbox.metadata.uid
}

/** The owner reference that ties a Pod, Service or volume claim to its Sandbox. */
export function sandboxOwner(sandbox: Sandbox): OwnerReference {
  return {
    apiVersion: apiVersionOf(sandboxKind),
    kind: sandboxKind.kind,
    name: nameOf(sandbox),
    uid: sandbox.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}

/** Value of the label that the Service selects and by which the router and our caches find what is the Sandbox's. */
export function sandboxNameHash(sandbox: Sandbox): string {
  return nameHash(nameOf(sandbox))
}

/** Hash of the template a Sandbox came from, which its NetworkPolicy selects; undefined for a stand-alone one. */
export function templateRefHashOf(sandbox: Sandbox): string | undefined {
  const label = sandbox.metadata.labels?.[labels.templateRefHash]
  if (label !== undefined) return label
  const template = sandbox.metadata.annotations?.[annotations.templateRef]
  return template === undefined ? undefined : nameHash(template)
}

/** `metadata.name`, which every object that was read from the API server has. */
export function nameOf(object: KubeObject): string {
  return object.metadata.name ?? ''
}
