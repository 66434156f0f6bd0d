import { pino } from 'pino'
import { namespaces, networkPolicies, persistentVolumeClaims, pods, services } from '../../src/api/core.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
} from '../../src/api/kinds.ts'
import { createCandidates } from '../../src/controllers/appraisal.ts'
import { createClaimController, type ClaimController } from '../../src/controllers/claim-controller.ts'
import type { ControllerDependencies } from '../../src/controllers/dependencies.ts'
import { claimIndexes, sandboxIndexes, setIndexes, warmPoolIndexes } from '../../src/controllers/indexes.ts'
import type { ClaimWorld } from './claim-world.ts'

/** One process that believes it leads. */
export class ClaimProcess {
  readonly caches
  readonly controller: ClaimController
  readonly reconfigured: (() => void)[] = []
  readonly #stop = new AbortController()
  readonly #running: Promise<void>
  readonly #world: ClaimWorld

  constructor(world: ClaimWorld) {
    const { api, clock, events } = world
    this.#world = world
    this.caches = {
      sandboxes: api.informer(sandboxKind, sandboxIndexes),
      claims: api.informer(sandboxClaimKind, claimIndexes),
      templates: api.informer(sandboxTemplateKind),
      warmPools: api.informer(sandboxWarmPoolKind, warmPoolIndexes),
      sets: api.informer(sandboxSetKind, setIndexes),
      pods: api.informer(pods),
      services: api.informer(services),
      volumeClaims: api.informer(persistentVolumeClaims),
      networkPolicies: api.informer(networkPolicies),
      namespaces: api.informer(namespaces),
    }
    const deps: ControllerDependencies = {
      client: api,
      informers: this.caches,
      config: () => world.config,
      onConfigChange: (listener) => void this.reconfigured.push(listener),
      originKeys: () => world.keys,
      clock,
      log: pino({ level: 'silent' }),
      events: {
        record: ({ metadata }, _type, reason) => void events.push(`${reason} ${metadata.name}`),
        flush: () => Promise.resolve(),
      },
      metrics: world.metrics,
      claimsWaiting: () => 0,
      random: () => 0.5,
    }
    this.controller = createClaimController(deps, createCandidates(deps))
    this.#running = this.controller.run(this.#stop.signal)
  }

  get hasCrashed(): boolean {
    return this.#stop.signal.aborted
  }

  /** It leads no more, and goes on following its caches. */
  async stepDown(): Promise<void> {
    this.#stop.abort()
    await this.#world.clock.advance(0)
    await this.#running
  }

  /** Ends the process: what it only had in memory is lost, and what it has asked for may still happen. */
  async crash(): Promise<void> {
    for (const cache of Object.values(this.caches)) cache.pause()
    await this.stepDown()
  }
}
