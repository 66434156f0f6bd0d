import { pino } from 'pino'
import type t from 'tap'
import {
  networkPolicies,
  persistentVolumeClaims,
  pods,
  services,
  namespaces,
  type NetworkPolicy,
  type Pod,
} from '../../src/api/core.ts'
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
import type { Controller, ControllerDependencies } from '../../src/controllers/dependencies.ts'
import {
  byController,
  claimIndexes,
  indexes,
  sandboxIndexes,
  setIndexes,
  warmPoolIndexes,
} from '../../src/controllers/indexes.ts'
import type { KubeObject, Resource } from '../../src/kube/object.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { MemoryApi, type MemoryInformer } from '../support/memory-api.ts'
import { running } from '../planning/sandbox-fixtures.ts'

type Tap = typeof t

/** An event that a controller recorded. */
interface Told {
  readonly about: string
  readonly reason: string
  readonly message: string
}

/** One controller on an API server in memory, with caches that a test can hold up. */
export class Harness {
  readonly clock = new ManualClock(Date.parse('2030-01-01T12:00:00Z'))
  readonly api = new MemoryApi(() => this.clock.now())
  readonly events: Told[] = []
  readonly caches = {
    sandboxes: this.api.informer(sandboxKind, sandboxIndexes),
    claims: this.api.informer(sandboxClaimKind, claimIndexes),
    templates: this.api.informer(sandboxTemplateKind),
    warmPools: this.api.informer(sandboxWarmPoolKind, warmPoolIndexes),
    sets: this.api.informer(sandboxSetKind, setIndexes),
    pods: labelled(this.api.informer(pods, { [indexes.controllerUid]: byController })),
    services: labelled(this.api.informer(services)),
    volumeClaims: labelled(this.api.informer(persistentVolumeClaims)),
    networkPolicies: this.api.informer(networkPolicies),
    namespaces: this.api.informer(namespaces),
  }
  claimsWaiting = 0
  config: Config = defaultConfig
  readonly #onConfigChange: (() => void)[] = []
  readonly #create: (deps: ControllerDependencies) => Controller
  #controller: Controller | undefined
  #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(t: Pick<Tap, 'teardown'>, create: (deps: ControllerDependencies) => Controller) {
    this.#create = create
    this.start()
    t.teardown(() => this.crash())
  }

  /** A process that knows nothing but what the caches show. */
  start(): void {
    const { api, caches, clock, events } = this
    this.#stop = new AbortController()
    this.#controller = this.#create({
      client: api,
      informers: caches,
      config: () => this.config,
      onConfigChange: (listener) => void this.#onConfigChange.push(listener),
      originKeys: () => {
        throw new Error('this controller signs nothing')
      },
      clock,
      log: pino({ level: 'silent' }),
      events: {
        record: ({ metadata }, _type, reason, message) =>
          void events.push({ about: metadata.name ?? '', reason, message }),
        flush: () => Promise.resolve(),
      },
      metrics: createMetrics(),
      claimsWaiting: () => this.claimsWaiting,
      random: () => 0.5,
    })
    this.#running = this.#controller.run(this.#stop.signal)
  }

  /** Ends the process: what it only had in memory is lost. */
  async crash(): Promise<void> {
    this.#stop.abort()
    await this.clock.advance(0)
    await this.#running
  }

  /** Makes the controller look at something again, as it would after any event about it. */
  async look(key: string): Promise<void> {
    this.#controller?.queue.add(key)
    await this.settle()
  }

  async reconfigure(config: Config): Promise<void> {
    this.config = config
    for (const listener of this.#onConfigChange) listener()
    await this.settle()
  }

  /** Lets the controller do all it can do without time passing. */
  async settle(): Promise<void> {
    await this.advance(0)
  }

  async advance(ms: number): Promise<void> {
    let before: number
    await this.clock.advance(ms)
    do {
      before = this.api.calls.length
      await this.clock.advance(0)
    } while (before !== this.api.calls.length)
  }

  /** The requests made while `during` runs and until there is nothing left to do, as `verb plural[/subresource]`. */
  async requests(during: () => unknown): Promise<string[]> {
    const from = this.api.calls.length
    await during()
    await this.settle()
    return this.api.calls
      .slice(from)
      .map(({ verb, plural, subresource }) => `${verb} ${plural}${subresource && `/${subresource}`}`)
  }

  /** Somebody else's write: not among the requests that are counted. */
  async put<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const isNew = object.metadata.resourceVersion === undefined
    const stored = isNew ? this.api.create(resource, object) : this.api.replace(resource, object)
    this.api.calls.pop()
    return stored
  }

  async drop<T extends KubeObject>(resource: Resource<T>, { metadata }: KubeObject): Promise<void> {
    const gone = this.api.delete(resource, { namespace: metadata.namespace ?? '', name: metadata.name ?? '' })
    this.api.calls.pop()
    await gone
  }

  /** Does something to which no fault happens. */
  async unharmed(something: () => Promise<unknown>): Promise<void> {
    const { fault } = this.api
    this.api.fault = () => undefined
    await something()
    this.api.fault = fault
  }

  sandbox(name = 'box'): Sandbox | undefined {
    return this.api.all(sandboxKind).find(({ metadata }) => metadata.name === name)
  }

  pod(name = 'box'): Pod | undefined {
    return this.api.all(pods).find(({ metadata }) => metadata.name === name)
  }

  policy(name: string): NetworkPolicy | undefined {
    return this.api.all(networkPolicies).find(({ metadata }) => metadata.name === name)
  }

  /** What a kubelet says about a Pod that has come up. */
  async kubelet(name = 'box', status: NonNullable<Pod['status']> = running): Promise<void> {
    const pod = this.pod(name)
    if (pod?.spec) await this.put(pods, { ...pod, spec: { ...pod.spec, nodeName: 'node-1' }, status })
  }
}

/** As the real cache: only what carries the sandbox-name hash. */
function labelled<T extends KubeObject>(informer: MemoryInformer<T>): MemoryInformer<T> {
  const receive = informer.receive.bind(informer)
  informer.receive = (news) => {
    if (news.object.metadata.labels?.[labels.sandboxNameHash] !== undefined) receive(news)
  }
  return informer
}
