import type { NetworkPolicy, Pod } from '../../src/api/core.ts'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate, SandboxWarmPool } from '../../src/api/kinds.ts'
import { defaultConfig, type Config } from '../../src/config/schema.ts'
import { setIndexes, warmPoolIndexes } from '../../src/controllers/indexes.ts'
import type { KubeClient } from '../../src/kube/client.ts'
import { KubeError, type KubeErrorCode } from '../../src/kube/errors.ts'
import { refKey, type KubeObject, type ObjectRef, type Resource } from '../../src/kube/object.ts'
import { templateOf } from '../../src/planning/pools.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { IndexedStore } from '../../src/runtime/store.ts'
import { byNamespace, createFactSource, namespaceIndex } from '../../webhooks/facts.ts'
import { byNameHash, bySetHash, byWarmPoolHash, nameHashIndex } from '../../webhooks/name-hashes.ts'

/** Empty caches with the indexes that the gate needs. */
export function emptyStores() {
  return {
    sandboxes: new IndexedStore<Sandbox>({ [nameHashIndex]: byNameHash }),
    claims: new IndexedStore<SandboxClaim>({ [namespaceIndex]: byNamespace }),
    templates: new IndexedStore<SandboxTemplate>({ [nameHashIndex]: byNameHash }),
    warmPools: new IndexedStore<SandboxWarmPool>({ ...warmPoolIndexes, [nameHashIndex]: byWarmPoolHash }),
    sets: new IndexedStore<SandboxSet>({ ...setIndexes, [nameHashIndex]: bySetHash }),
    pods: new IndexedStore<Pod>(),
    networkPolicies: new IndexedStore<NetworkPolicy>(),
    namespaces: new IndexedStore<KubeObject>(),
  }
}

/** An API server that answers from a map and notes what it was asked; absent is NotFound, `'slow'` never answers. */
export class StubClient implements Pick<KubeClient, 'get' | 'create'> {
  readonly objects = new Map<string, KubeObject | 'slow' | KubeError>()
  readonly asked: string[] = []
  /** What a dry-run Pod gets. */
  onCreate: (pod: Pod) => Promise<void> = async () => undefined
  readonly created: { pod: Pod; options: unknown }[] = []

  async get<T extends KubeObject>({ plural }: Resource<T>, ref: ObjectRef): Promise<T> {
    const path = `${plural}/${refKey(ref)}`
    this.asked.push(path)
    const found = this.objects.get(path)
    if (found === 'slow') return await new Promise<never>(() => undefined)
    if (found instanceof KubeError) throw found
    if (!found) throw kubeError('NotFound', 404)
    return found as T
  }

  async create<T extends KubeObject>(_resource: Resource<T>, object: T, options?: unknown): Promise<T> {
    this.created.push({ pod: object, options })
    await this.onCreate(object)
    return object
  }
}

export function kubeError(code: KubeErrorCode, status: number, details: { reason?: string; message?: string } = {}) {
  return new KubeError(code, details.message ?? code, {
    status,
    ...(details.reason !== undefined && { reason: details.reason }),
  })
}

/** A fact source over empty caches, with everything that a test wants to fill or watch. */
export function buildFacts(changes: { claims?: Partial<Config['claims']> } = {}) {
  const stores = emptyStores()
  const client = new StubClient()
  const clock = new ManualClock()
  const config: Config = { ...defaultConfig, claims: { ...defaultConfig.claims, ...changes.claims } }
  const facts = createFactSource({ client, stores, config: () => config, clock, templateOf })
  return { facts, stores, client, clock, config }
}
