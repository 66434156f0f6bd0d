import type { Sandbox } from '../../api/kinds.ts'
import type { VolumeClaimTemplate } from '../../api/schema.ts'
import { blueprintOf } from '../blueprint-view.ts'
import { isReserved, isRouterLabel, keyChanges, keyPath } from '../keys.ts'
import { isManaged } from '../ownership.ts'
import type { Rule, Subject, Violation } from '../rule.ts'

type WithMetadata = 'SandboxTemplate' | 'SandboxSet' | 'Sandbox' | 'SandboxClaim'
type Place = { path: string; before?: Record<string, string> | undefined; after?: Record<string, string> | undefined }

/**
 * What a template writes on its Pods is what NetworkPolicies, Services and the router go by. Mending is free: a reserved
 * key may go, except from the Sandbox of a pool or a claim, where the controllers put it.
 */
export const reservedMetadata: Rule<WithMetadata> = {
  id: 'template/reserved-metadata',
  kinds: ['SandboxTemplate', 'SandboxSet', 'Sandbox', 'SandboxClaim'],
  on: ['CREATE', 'UPDATE'],
  judges: 'change',
  integrity: true,
  mode: 'enforce',
  refuses: 'Reserved keys and app=sandbox-router in the metadata of a Pod template or of a volume claim template.',
  why: "A Pod could put itself into another pool, take another sandbox's traffic, or pass for the router.",
  relax: 'Nothing does for a tenant; use labels and annotations of your own.',
  check(subject) {
    if (subject.actor === 'controller' || subject.actor === 'trusted') return []
    const mayRemove = !(subject.kind === 'Sandbox' && isManaged(subject.oldObject as Sandbox | undefined))
    return placesOf(subject).flatMap((place) => judgePlace(place, mayRemove))
  },
}

function placesOf({ object, oldObject }: Subject<WithMetadata>): Place[] {
  const now = blueprintOf(object)
  const was = oldObject && blueprintOf(oldObject)
  const claims = now.volumeClaimTemplates.flatMap(({ metadata }, i): Place[] => {
    const old = was?.volumeClaimTemplates.find((template) => template.metadata?.name === metadata?.name)
    return mapsOf(`spec.volumeClaimTemplates[${i}].metadata`, old?.metadata, metadata)
  })
  return [...mapsOf(`${now.path}.metadata`, was, now), ...claims]
}

type Maps = Partial<Pick<VolumeClaimTemplate['metadata'], 'labels' | 'annotations'>>

function mapsOf(path: string, before: Maps | undefined, after: Maps | undefined): Place[] {
  return (['labels', 'annotations'] as const).map((map) => ({
    path: `${path}.${map}`,
    before: before?.[map],
    after: after?.[map],
  }))
}

function judgePlace({ path, before, after }: Place, mayRemove: boolean): Violation[] {
  return keyChanges(before, after).flatMap(({ key, how }): Violation[] => {
    const field = keyPath(path, key)
    if (isReserved(key) && !(how === 'removed' && mayRemove)) {
      return [
        { field, message: `it is reserved for the controllers and was ${how}. Use a key in a domain of your own.` },
      ]
    }
    if (path.endsWith('.labels') && isRouterLabel(key, after?.[key] ?? '')) {
      const message =
        'only the router may be labelled app=sandbox-router, since it is let in to every sandbox. Remove it.'
      return [{ field, message }]
    }
    return []
  })
}
