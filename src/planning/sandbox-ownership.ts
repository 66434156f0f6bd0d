import type { Sandbox } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { controllerOf, type KubeObject } from '../kube/object.ts'
import { isStandAlone, nameOf, sandboxNameHash, sandboxOwner } from './sandbox-identity.ts'
import type { AdoptStep, PartKind } from './sandbox-steps.ts'

/** Our caches hold what bears the label of sandboxes: no event tells when anything else changes, or goes. */
export function isOutsideCaches({ metadata }: KubeObject): boolean {
  return metadata.labels?.[labels.sandboxNameHash] === undefined
}

/**
 * How to take over an object of the name that is not ours; undefined when it must be left alone. Only what its owner
 * offered by label, what nobody else controls, and never for a pool or a claim: those would hand an object of unknown
 * content to someone else.
 */
export function adoptionOf(object: AdoptStep['object'], part: PartKind, sandbox: Sandbox): AdoptStep | undefined {
  const { uid, resourceVersion, ownerReferences = [], deletionTimestamp } = object.metadata
  const isOffered = object.metadata.labels?.[labels.adoptable] === 'true' && controllerOf(object) === undefined
  if (!isOffered || !isStandAlone(sandbox) || deletionTimestamp !== undefined) return undefined
  const patch = {
    metadata: {
      uid,
      resourceVersion,
      ownerReferences: [...ownerReferences, sandboxOwner(sandbox)],
      labels: { [labels.sandboxNameHash]: sandboxNameHash(sandbox) },
    },
  }
  return { kind: 'adopt', part, object, patch }
}

/** Says who holds a name that the Sandbox needs, and what would free it. */
export function occupantMessage(object: AdoptStep['object'], part: PartKind, sandbox: Sandbox): string {
  const owner = controllerOf(object)
  const isPredecessors = owner?.kind === 'Sandbox' && owner.name === nameOf(sandbox)
  if (isPredecessors || object.metadata.deletionTimestamp !== undefined) {
    return `Waiting for ${part} ${nameOf(object)}, which is not this sandbox's, to be gone.`
  }
  const held = `${part} ${nameOf(object)} exists and is not this sandbox's`
  if (owner) return `${held} but controlled by ${owner.kind} ${owner.name}. Delete it, or use another name.`
  const advice = isStandAlone(sandbox) ? `, label it ${labels.adoptable}=true to hand it over,` : ''
  return `${held}. Delete it${advice} or use another name.`
}
