import type { Test } from 'tap'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxClaim,
} from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { defaultConfig, type Config } from '../../src/config/schema.ts'
import { controllerOf, type KubeObject, type Resource } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { signedBlueprint, signedPodMetadata, signOrigin, type OriginKeys } from '../../src/planning/origin.ts'
import type { Pool } from '../../src/planning/pools.ts'
import { buildMember } from '../../src/planning/recipe.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import { ClaimProcess } from './claim-process.ts'
import { MemoryApi, type Fault } from './memory-api.ts'
import { aTemplate, aWarmPool, noon, recipeFor } from './pool-fixtures.ts'
import { testKeys } from './pool-world.ts'

/** An API in memory, a pool whose stock a test decides on, and processes that serve claims from it. */
export class ClaimWorld {
  readonly clock = new ManualClock(noon)
  readonly api = new MemoryApi(() => this.clock.now())
  /** `<reason> <name of the object>` of every event, in order. */
  readonly events: string[] = []
  config: Config = defaultConfig
  keys: OriginKeys = testKeys
  readonly #processes: ClaimProcess[] = []
  #members = 0

  readonly metrics: Metrics

  constructor(t: Pick<Test, 'teardown'>, metrics = createMetrics()) {
    this.metrics = metrics
    t.teardown(() => Promise.all(this.#processes.map((process) => process.crash())))
  }

  /** A process with caches of its own, filled from what is stored now. It serves claims from now on. */
  start(): ClaimProcess {
    const process = new ClaimProcess(this)
    this.#processes.push(process)
    return process
  }

  async createPool(spec: Parameters<typeof aWarmPool>[0] = {}, name = 'pool'): Promise<Pool> {
    const pool = aWarmPool(spec)
    return this.put<Pool>(sandboxWarmPoolKind, { ...pool, metadata: { name, namespace: 'ns' } })
  }

  /** One more sandbox in the pool's stock, as the pool controller makes it; Ready unless told otherwise. */
  async addMember(pool: Pool, { ready = true, node = 'node-1' } = {}): Promise<Sandbox> {
    const { namespace = '', uid: ownerUid = '' } = pool.metadata
    const name = `${pool.metadata.name}-${++this.#members}`
    const recipe = recipeFor(pool)
    const made = { blueprint: signedBlueprint(recipe.prototype), podMetadata: signedPodMetadata(recipe.prototype) }
    const origin = signOrigin(this.keys.current, { namespace, ownerUid, name, ...made })
    const sandbox = await this.put(sandboxKind, buildMember(recipe, name, origin))
    return ready ? this.makeReady(sandbox, node) : sandbox
  }

  /** What the Sandbox controller reports once the Pod runs. */
  async makeReady({ metadata: { name = '' } }: Sandbox, nodeName = 'node-1'): Promise<Sandbox> {
    return this.report(name, 'True', { podIPs: ['10.0.0.1'], podUID: `pod-of-${name}`, nodeName })
  }

  /** A status of the sandbox, with this Ready condition. */
  async report(name: string, status: 'True' | 'False', rest: object = {}, reason?: string): Promise<Sandbox> {
    const lastTransitionTime = new Date(this.clock.now()).toISOString()
    const known = reason ?? (status === 'True' ? 'DependenciesReady' : 'DependenciesNotReady')
    const ready = { type: 'Ready', status, reason: known, message: '', lastTransitionTime }
    const patch = { status: { conditions: [ready], ...rest } }
    return this.unseen(() =>
      this.api.patch(sandboxKind, { namespace: 'ns', name }, patch, { type: 'merge', subresource: 'status' }),
    )
  }

  async createClaim(name: string, spec: Partial<SandboxClaim['spec']> = {}, metadata = {}): Promise<SandboxClaim> {
    return this.put(sandboxClaimKind, {
      metadata: { name, namespace: 'ns', ...metadata },
      spec: { warmPoolRef: { name: 'pool' }, ...spec },
    })
  }

  /** Somebody else's creation: neither counted nor harmed. */
  put<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.unseen(() => this.api.create(resource, object))
  }

  patch<T extends KubeObject>(resource: Resource<T>, name: string, patch: object): Promise<T> {
    return this.unseen(() => this.api.patch(resource, { namespace: 'ns', name }, patch, { type: 'merge' }))
  }

  async remove(resource: Resource, name: string): Promise<void> {
    await this.unseen(() => this.api.delete(resource, { namespace: 'ns', name }))
  }

  /** Does something that is no request of ours and to which no fault happens. */
  async unseen<R>(something: () => Promise<R>): Promise<R> {
    const { fault } = this.api
    this.api.fault = () => undefined
    const result = something()
    this.api.calls.pop()
    // Before anybody else's request can come in between: the fault is asked for as soon as a request is made.
    this.api.fault = fault
    return result
  }

  /** What the garbage collector does: what belongs to a claim or pool that is gone goes too. */
  async collectGarbage(): Promise<void> {
    const owners = [sandboxClaimKind, sandboxWarmPoolKind, sandboxSetKind].flatMap((kind) =>
      this.api.all<KubeObject>(kind),
    )
    const alive = new Set(owners.map(({ metadata }) => metadata.uid))
    for (const sandbox of this.sandboxes()) {
      const owner = controllerOf(sandbox)
      if (owner && !alive.has(owner.uid)) await this.remove(sandboxKind, sandbox.metadata.name ?? '')
    }
  }

  /** Lets everything happen that can happen without time passing. */
  settle(): Promise<void> {
    return this.advance(0)
  }

  async advance(ms: number): Promise<void> {
    let before: number
    let rounds = 0
    await this.clock.advance(ms)
    do {
      before = this.api.calls.length
      if (++rounds > 1_000) throw new Error(`requests without end: ${JSON.stringify(this.api.calls.slice(-4))}`)
      await this.clock.advance(0)
    } while (before !== this.api.calls.length)
  }

  /** The requests made by `during` and all that follows from it at once, as `verb plural[/subresource]`. */
  async requests(during: () => unknown): Promise<string[]> {
    const from = this.api.calls.length
    await during()
    await this.settle()
    return this.api.calls
      .slice(from)
      .map(({ verb, plural, subresource }) => `${verb} ${plural}${subresource && `/${subresource}`}`)
  }

  /** The next faults, one for each request for which `isMeant`; `undefined` lets one pass. */
  failNext(isMeant: (call: Parameters<Fault>[0]) => boolean, ...faults: ReturnType<Fault>[]): void {
    this.api.fault = (call) => (isMeant(call) ? faults.shift() : undefined)
  }

  claim(name: string): SandboxClaim | undefined {
    return this.api.all(sandboxClaimKind).find(({ metadata }) => metadata.name === name)
  }

  sandboxes(): Sandbox[] {
    return this.api.all(sandboxKind)
  }

  /** Names of the sandboxes that the claim controls. */
  owned(claim: string): string[] {
    const uid = this.claim(claim)?.metadata.uid
    return this.sandboxes()
      .filter((sandbox) => uid !== undefined && controllerOf(sandbox)?.uid === uid)
      .map(({ metadata }) => metadata.name ?? '')
  }

  stock(): Sandbox[] {
    return this.sandboxes().filter(({ metadata }) => metadata.labels?.[labels.warmPool] !== undefined)
  }

  ready(claim: string) {
    return findCondition(this.claim(claim)?.status?.conditions, 'Ready')
  }

  boundTo(claim: string): string | undefined {
    return this.claim(claim)?.status?.sandbox?.name
  }
}

/** A world with the template `python` and the pool `pool`, with `members` ready sandboxes, and one process. */
export async function aClaimWorld(
  t: Pick<Test, 'teardown'>,
  {
    members = 1,
    template = {},
    metrics,
  }: { members?: number; template?: Parameters<typeof aTemplate>[0]; metrics?: Metrics } = {},
): Promise<{ world: ClaimWorld; pool: Pool; process: ClaimProcess }> {
  const world = new ClaimWorld(t, metrics)
  const { metadata, ...rest } = aTemplate(template)
  await world.put(sandboxTemplateKind, { ...rest, metadata: { name: metadata.name ?? '', namespace: 'ns' } })
  const pool = await world.createPool()
  for (let i = 0; i < members; i++) await world.addMember(pool)
  return { world, pool, process: world.start() }
}

/** In the end the claim owns one sandbox, and says that it is this one. */
export async function boundOnce(t: Pick<Test, 'equal'>, world: ClaimWorld, claim: string): Promise<void> {
  await world.advance(60_000)
  t.equal(world.owned(claim).length, 1, 'it owns one sandbox')
  t.equal(world.boundTo(claim), world.owned(claim)[0], 'which is the one in its status')
}
