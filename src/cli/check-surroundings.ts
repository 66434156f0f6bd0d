import { byNamespace, namespaceIndex, type GateStores } from '../../webhooks/facts.ts'
import { byNameHash, bySetHash, byWarmPoolHash, nameHashIndex } from '../../webhooks/name-hashes.ts'
import { namespaces, networkPolicies, type NetworkPolicy, type Pod } from '../api/core.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxClaim,
  type SandboxSet,
  type SandboxTemplate,
  type SandboxWarmPool,
} from '../api/kinds.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import type { KubeObject, Resource } from '../kube/object.ts'
import { listPages } from '../runtime/list-pages.ts'
import { IndexedStore } from '../runtime/store.ts'

/** Every kind that rules look at beside the object itself, and of which a manifest or a cluster can tell. */
const resources: readonly Resource[] = [
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  sandboxSetKind,
  sandboxKind,
  sandboxClaimKind,
  networkPolicies,
]

/** An object whose kind is written on it: those in lists leave it out. */
export type KnownObject = KubeObject & { readonly kind: string }

/** The objects around those that are checked, in the stores that the gate keeps. */
export interface Surroundings {
  readonly stores: GateStores
  /** Whether objects of this kind tell rules anything about others. */
  knows(resource: Resource): boolean
  add(object: KnownObject): void
}

export function createSurroundings(): Surroundings {
  const stores = {
    templates: new IndexedStore<SandboxTemplate>({ [nameHashIndex]: byNameHash }),
    warmPools: new IndexedStore<SandboxWarmPool>({ [nameHashIndex]: byWarmPoolHash }),
    sets: new IndexedStore<SandboxSet>({ [nameHashIndex]: bySetHash }),
    sandboxes: new IndexedStore<Sandbox>({ [nameHashIndex]: byNameHash }),
    claims: new IndexedStore<SandboxClaim>({ [namespaceIndex]: byNamespace }),
    networkPolicies: new IndexedStore<NetworkPolicy>(),
    namespaces: new IndexedStore<KubeObject>(),
    pods: new IndexedStore<Pod>(),
  }
  const storeOf = {
    [sandboxTemplateKind.kind]: stores.templates,
    [sandboxWarmPoolKind.kind]: stores.warmPools,
    [sandboxSetKind.kind]: stores.sets,
    [sandboxKind.kind]: stores.sandboxes,
    [sandboxClaimKind.kind]: stores.claims,
    [networkPolicies.kind]: stores.networkPolicies,
    [namespaces.kind]: stores.namespaces,
  } as Record<string, IndexedStore<KubeObject>>
  return {
    stores,
    knows: ({ kind }) => kind in storeOf,
    add: (object) => void storeOf[object.kind]?.set(object),
  }
}

/**
 * What a cluster has in some namespaces. A kind that it does not have counts as none; one that may not be listed is left
 * out and named in `unreadable`. Rejects with a KubeError on everything else.
 */
export async function readCluster(
  client: KubeClient,
  names: readonly string[],
): Promise<{ objects: KnownObject[]; unreadable: string[] }> {
  const objects: KnownObject[] = []
  const unreadable: string[] = []
  const read = async (kind: string, what: string, request: () => Promise<readonly KubeObject[]>) => {
    try {
      for (const object of await request()) objects.push({ ...object, kind })
    } catch (error) {
      if (isKubeError(error, 'Forbidden')) unreadable.push(what)
      else if (!isKubeError(error, 'NotFound')) throw error
    }
  }
  for (const namespace of names) {
    await read(namespaces.kind, `namespace ${namespace}`, async () => [
      await client.get(namespaces, { name: namespace }),
    ])
    for (const resource of resources) {
      await read(resource.kind, `${resource.plural} in ${namespace}`, async () => {
        const { items } = await listPages((page) => client.list(resource, { namespace, ...page }))
        return items
      })
    }
  }
  return { objects, unreadable }
}
