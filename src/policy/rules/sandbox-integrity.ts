import { labels } from '../../api/vocabulary.ts'
import { controllerOf } from '../../kube/object.ts'
import { changedFields } from '../changed-fields.ts'
import { isReserved, keyChanges, keyPath } from '../keys.ts'
import { forbiddenOwnerChanges, isManaged, isPool, isPoolOrClaim } from '../ownership.ts'
import type { Actor, Rule, Violation } from '../rule.ts'

const shared = { kinds: ['Sandbox'], judges: 'change', integrity: true, mode: 'enforce' } as const

const poolLabels: ReadonlySet<string> = new Set([labels.warmPool, labels.setPool])

/** Who writes the controllers' fields: the controllers, and tools that restore what they wrote. */
const mayWrite = (actor: Actor) => actor === 'controller' || actor === 'trusted'

/**
 * A Sandbox that passes for a pool's stock is handed to the next claim, with whatever its maker put into it; one that
 * passes for a claim's is trusted by that claim's owner. While a pool or a claim owns it, any further owner would also
 * keep it alive after them.
 */
export const forgedPool: Rule<'Sandbox'> = {
  ...shared,
  id: 'sandbox/forged-pool',
  on: ['CREATE', 'UPDATE'],
  refuses: 'Pool labels, or a pool or claim as owner, set or changed on a Sandbox by anyone but the controllers.',
  why: 'A forged pool member would be handed to the next claim, with whatever its maker put into it.',
  relax: 'Nothing does for a tenant; list a backup tool under admission.trustedUsers.',
  check({ object, oldObject, actor }) {
    if (mayWrite(actor)) return []
    const forgedLabels = keyChanges(oldObject?.metadata.labels, object.metadata.labels)
      .filter(({ key, how }) => poolLabels.has(key) && how !== 'removed')
      .map(({ key, how }) => ({
        field: keyPath('metadata.labels', key),
        message: `only the controllers put a Sandbox into a pool, and this label was ${how}. Remove it; raise the pool's replicas instead.`,
      }))
    const isOwned = (oldObject?.metadata.ownerReferences ?? []).some(isPoolOrClaim)
    const forgedOwners = forbiddenOwnerChanges(
      oldObject,
      object,
      actor,
      (owner) => isOwned || isPoolOrClaim(owner),
    ).map(({ owner, how }) => ({
      field: 'metadata.ownerReferences',
      message: `only the controllers say which pool or claim owns a Sandbox; ${owner.kind} ${owner.name} was ${how}. Leave the owners as they are; create a SandboxClaim instead.`,
    }))
    return [...forgedLabels, ...forgedOwners]
  },
}

/** The template-ref hash is what the NetworkPolicy selects: without it a sandbox has no policy at all. */
export const sandboxReservedKeys: Rule<'Sandbox'> = {
  ...shared,
  id: 'sandbox/reserved-keys',
  on: ['CREATE', 'UPDATE'],
  refuses: 'Adding, changing or removing labels and annotations of the reserved domains on a Sandbox.',
  why: 'NetworkPolicies, Services and the controllers find a sandbox by them; a change takes it out of its policy.',
  relax: 'Nothing does for a tenant; agents.x-k8s.io/adoptable is free on a stand-alone Sandbox.',
  check({ object, oldObject, actor }) {
    if (mayWrite(actor)) return []
    const isStandAlone = !isManaged(oldObject) && !isManaged(object)
    return (['labels', 'annotations'] as const).flatMap((map) =>
      keyChanges(oldObject?.metadata[map], object.metadata[map])
        .filter(({ key }) => isReserved(key) && !(key === labels.adoptable && isStandAlone))
        // These two are the business of sandbox/forged-pool.
        .filter(({ key, how }) => !(map === 'labels' && poolLabels.has(key) && how !== 'removed'))
        .map(({ key, how }) => ({
          field: keyPath(`metadata.${map}`, key),
          message: `it is reserved for the controllers and was ${how}. Leave it as it was.`,
        })),
    )
  },
}

/**
 * Stock goes to the next claim, whoever that is. Its proof of origin covers what it is made of, but neither times
 * nor mode. The marks of the old object count: who adds marks and changes the spec at once forges a member.
 */
export const pooledSpec: Rule<'Sandbox'> = {
  ...shared,
  id: 'sandbox/pooled-spec',
  on: ['UPDATE'],
  refuses: 'Changing anything in the spec of a Sandbox that is the stock of a pool, by anyone but the controllers.',
  why: 'The next claim would get a sandbox that its template does not describe, or one that is about to end.',
  relax: 'Nothing does for a tenant: change the template or the pool; list a backup tool under admission.trustedUsers.',
  check({ object, oldObject, actor }) {
    if (!oldObject || mayWrite(actor)) return []
    const owner = controllerOf(oldObject)
    const isPooled =
      (owner !== undefined && isPool(owner)) ||
      [...poolLabels].some((key) => oldObject.metadata.labels?.[key] !== undefined)
    if (!isPooled) return []
    return changedFields(oldObject.spec, object.spec).map((field) => ({
      field: `spec.${field}`,
      message:
        "a pool's Sandbox stays as the pool made it until it is claimed. Change the template or the pool instead.",
    }))
  },
}

/**
 * A pool that is deleted in the foreground has its Sandboxes deleted too, and the collector may act on a list from
 * before an adoption. The claim must be known, alive, and the very one that controls the Sandbox now.
 */
export const collectedWhileClaimed: Rule<'Sandbox'> = {
  ...shared,
  id: 'sandbox/collected-while-claimed',
  on: ['DELETE'],
  refuses: 'The garbage collector deleting a Sandbox whose claim is alive.',
  why: 'A Sandbox that was adopted while its pool was being deleted would be taken from its claim.',
  relax: 'Delete the claim, and its Sandbox goes with it.',
  check({ object, actor }, { facts }): Violation[] {
    const owner = controllerOf(object)
    if (actor !== 'collector' || owner?.kind !== 'SandboxClaim') return []
    const claim = facts.owningClaim?.kind === 'found' ? facts.owningClaim.value : undefined
    if (claim?.metadata.uid !== owner.uid || claim.metadata.deletionTimestamp !== undefined) return []
    const message = `claim ${owner.name} is alive and holds this Sandbox. It goes when the claim is deleted.`
    return [{ field: 'metadata.ownerReferences', message }]
  },
}
