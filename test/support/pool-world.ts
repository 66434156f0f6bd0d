import { pino } from 'pino'
import type { Test } from 'tap'
import { namespaces, networkPolicies, persistentVolumeClaims, pods, services, type Pod } from '../../src/api/core.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
} from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { defaultConfig, type Config } from '../../src/config/schema.ts'
import type { ControllerDependencies } from '../../src/controllers/dependencies.ts'
import { claimIndexes, sandboxIndexes, setIndexes, warmPoolIndexes } from '../../src/controllers/indexes.ts'
import { createPoolController } from '../../src/controllers/pool-controller.ts'
import { claimOwner } from '../../src/planning/adoption.ts'
import type { OriginKeys } from '../../src/planning/origin.ts'
import type { Pool } from '../../src/planning/pools.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { MemoryApi } from './memory-api.ts'
import { aTemplate, noon } from './pool-fixtures.ts'

export const testKeys: OriginKeys = { current: { id: 'k1', secret: Buffer.alloc(32, 1) } }

/** The pool controller, running on a manual clock against an API in memory whose watches a test can hold up. */
export class PoolWorld {
  readonly clock = new ManualClock(noon)
  readonly api = new MemoryApi(() => this.clock.now())
  readonly informers = {
    sandboxes: this.api.informer(sandboxKind, sandboxIndexes),
    claims: this.api.informer(sandboxClaimKind, claimIndexes),
    templates: this.api.informer(sandboxTemplateKind),
    warmPools: this.api.informer(sandboxWarmPoolKind, warmPoolIndexes),
    sets: this.api.informer(sandboxSetKind, setIndexes),
    pods: this.api.informer(pods),
    services: this.api.informer(services),
    volumeClaims: this.api.informer(persistentVolumeClaims),
    networkPolicies: this.api.informer(networkPolicies),
    namespaces: this.api.informer(namespaces),
  }
  /** `<type> <reason> <message>` of every event. */
  readonly events: string[] = []
  readonly #stopped = new AbortController()
  config: Config = defaultConfig
  keys: OriginKeys = testKeys
  claimsWaiting = 0
  #randomState = 1

  readonly deps: ControllerDependencies = {
    client: this.api,
    informers: this.informers,
    config: () => this.config,
    onConfigChange: () => {},
    originKeys: () => this.keys,
    clock: this.clock,
    log: pino({ level: 'silent' }),
    events: {
      record: (_object, type, reason, message) => void this.events.push(`${type} ${reason} ${message}`),
      flush: () => Promise.resolve(),
    },
    metrics: createMetrics(),
    claimsWaiting: () => this.claimsWaiting,
    random: () => (this.#randomState = (this.#randomState * 16807) % 2147483647) / 2147483647,
  }

  /** Starts the controller; the returned function stops it and waits for its end. */
  start(): () => Promise<void> {
    const running = createPoolController(this.deps).run(this.#stopped.signal)
    return async () => {
      this.#stopped.abort()
      await running
    }
  }

  /** Lets what is under way finish, and a short time pass so that news are taken up and a put-off status is written. */
  async settle(ms = 500): Promise<void> {
    await this.clock.advance(ms)
  }

  async createPool<P extends Pool>(pool: P): Promise<P> {
    const { name = '', namespace = '' } = pool.metadata
    const resource = 'sandboxTemplateRef' in pool.spec ? sandboxWarmPoolKind : sandboxSetKind
    return (await this.api.create<Pool>(resource, { ...pool, metadata: { name, namespace } })) as P
  }

  async scale(pool: Pool, replicas: number): Promise<void> {
    await this.patchPool(pool, { spec: { replicas } })
  }

  async patchPool(pool: Pool, patch: object): Promise<void> {
    const { name = '', namespace = '' } = pool.metadata
    const resource = 'sandboxTemplateRef' in pool.spec ? sandboxWarmPoolKind : sandboxSetKind
    await this.api.patch<Pool>(resource, { name, namespace }, patch, { type: 'merge' })
  }

  /** The pool as it is stored now. */
  stored<P extends Pool>(pool: P): P {
    const resource = 'sandboxTemplateRef' in pool.spec ? sandboxWarmPoolKind : sandboxSetKind
    return this.api.all<Pool>(resource).find(({ metadata }) => metadata.name === pool.metadata.name) as P
  }

  /** Unclaimed sandboxes as they are stored now. */
  stock(): Sandbox[] {
    return this.api.all(sandboxKind).filter(({ metadata }) => metadata.labels?.[labels.warmPool] !== undefined)
  }

  /** What the Sandbox controller reports once the Pod runs. */
  async makeReady(sandbox: Sandbox): Promise<void> {
    const lastTransitionTime = new Date(this.clock.now()).toISOString()
    const ready = { type: 'Ready', status: 'True', reason: 'DependenciesReady', message: '', lastTransitionTime }
    await this.patchStatus(sandbox, { conditions: [ready], podIPs: ['10.0.0.1'], podUID: 'pod' })
  }

  /** The Pod that the Sandbox controller makes for the sandbox. */
  async createPod({ metadata: { name = '', namespace = '', uid = '' } }: Sandbox, pod: Pod): Promise<void> {
    const owner = { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name, uid, controller: true }
    await this.api.create(pods, { ...pod, metadata: { name, namespace, ownerReferences: [owner] } })
  }

  async patchStatus({ metadata: { name = '', namespace = '' } }: Sandbox, status: object): Promise<void> {
    await this.api.patch(sandboxKind, { name, namespace }, { status }, { type: 'merge', subresource: 'status' })
  }

  async makeAllReady(): Promise<void> {
    for (const sandbox of this.stock()) {
      if (sandbox.status === undefined) await this.makeReady(sandbox)
    }
    await this.settle()
  }

  /** What the claim controller does to a sandbox it takes. */
  async claim({ metadata: { name = '', namespace = '', uid, resourceVersion } }: Sandbox): Promise<void> {
    const owner = claimOwner({
      metadata: { name: 'claim', namespace, uid: `claim-of-${name}` },
      spec: { warmPoolRef: { name: 'pool' } },
    })
    const gone = { [labels.warmPool]: null, [labels.setPool]: null, [labels.blueprintHash]: null }
    const metadata = { uid, resourceVersion, ownerReferences: [owner], labels: gone }
    await this.api.patch(sandboxKind, { name, namespace }, { metadata }, { type: 'merge' })
  }
}

/** A world in which the controller runs, with the template `python`. */
export async function aWorld(t: Test): Promise<PoolWorld> {
  const world = new PoolWorld()
  await world.api.create(sandboxTemplateKind, aTemplate())
  t.teardown(world.start())
  return world
}

/** The same, with a pool that is full and available. */
export async function aFullPool<P extends Pool>(t: Test, spec: P): Promise<{ world: PoolWorld; pool: P }> {
  const world = await aWorld(t)
  const pool = await world.createPool(spec)
  await world.settle()
  await world.makeAllReady()
  return { world, pool }
}

export function conditionOf(pool: Pool, type: string) {
  return pool.status?.conditions?.find((condition) => condition.type === type)
}
