import * as fc from 'fast-check'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { sandboxClaimKind, sandboxKind } from '../../src/api/kinds.ts'
import { controllerOf } from '../../src/kube/object.ts'
import type { Pool } from '../../src/planning/pools.ts'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import type { ClaimProcess } from '../support/claim-process.ts'
import { aClaimWorld, type ClaimWorld } from '../support/claim-world.ts'
import { kubeError, type Fault } from '../support/memory-api.ts'

/** What can happen to one request. A slow one is carried out when the test comes to it, whoever sent it. */
const fates = ['fine', 'fine', 'fine', 'fine', 'lost', 'neverArrived', 'conflict', 'broken', 'busy', 'slow'] as const
type Fate = (typeof fates)[number]

const turns = [
  ...['claim', 'claim', 'claimWithEnv', 'claimRefused', 'dropClaim'],
  ...['addMember', 'addWarming', 'makeReady', 'removeMember', 'loseSandbox', 'gc'],
  ...['settle', 'tick', 'tick', 'wait', 'waitLong', 'catchUpOnSlow'],
  ...['lagSandboxes', 'lagClaims', 'deliverOne', 'catchUp', 'crash', 'secondLeader'],
] as const
type Turn = (typeof turns)[number]

const errors: Partial<Record<Fate, ReturnType<typeof kubeError> | 'lost'>> = {
  lost: 'lost',
  neverArrived: kubeError('OutcomeUnknown'),
  broken: kubeError('ServerError'),
  busy: kubeError('TooManyRequests'),
}

/** One run: the world, who leads, and the requests that are held up. */
class Run {
  readonly world: ClaimWorld
  readonly pool: Pool
  readonly held: (() => void)[] = []
  readonly broken: string[] = []
  leaders: ClaimProcess[]
  #claims = 0

  constructor(world: ClaimWorld, pool: Pool, process: ClaimProcess, fate: () => Fate) {
    this.world = world
    this.pool = pool
    this.leaders = [process]
    world.api.fault = (call) => this.#fault(call, fate())
    this.#watchForTheft()
  }

  async take(turn: Turn, pick: number): Promise<unknown> {
    const { world, leaders } = this
    const among = <T>(list: readonly T[]): T | undefined => list[pick % Math.max(1, list.length)]
    const leader = among(leaders)
    const nameOf = (object: { metadata: { name?: string } } | undefined) => object?.metadata.name
    switch (turn) {
      case 'claim':
        return world.createClaim(`c-${++this.#claims}`)
      case 'claimWithEnv':
        return world.createClaim(`c-${++this.#claims}`, { env: [{ name: 'A', value: '1' }] })
      case 'claimRefused':
        return world.createClaim(`c-${++this.#claims}`, {
          additionalPodMetadata: { labels: { app: 'sandbox-router' } },
        })
      case 'dropClaim':
        return this.#remove(sandboxClaimKind, nameOf(among(this.#living())))
      case 'addMember':
        return world.addMember(this.pool)
      case 'addWarming':
        return world.addMember(this.pool, { ready: false })
      case 'makeReady': {
        const sandbox = among(world.sandboxes().filter(({ status }) => status === undefined))
        return sandbox && world.makeReady(sandbox)
      }
      case 'removeMember':
        return this.#remove(sandboxKind, nameOf(among(world.stock())))
      case 'loseSandbox':
        return this.#remove(sandboxKind, nameOf(among(world.sandboxes())))
      case 'gc':
        return world.collectGarbage()
      case 'settle':
        this.#endOverlap()
        return world.settle()
      case 'tick':
        return world.clock.advance(0)
      case 'wait':
        this.#endOverlap()
        return world.clock.advance(300)
      case 'waitLong':
        this.#endOverlap()
        return world.clock.advance(11_000)
      case 'catchUpOnSlow':
        return this.held.splice(pick % Math.max(1, this.held.length), 1)[0]?.()
      case 'lagSandboxes':
        return leader?.caches.sandboxes.pause()
      case 'lagClaims':
        return leader?.caches.claims.pause()
      case 'deliverOne':
        return [leader?.caches.sandboxes.deliver(1), leader?.caches.claims.deliver(1)]
      case 'catchUp':
        return this.#catchUp(leader)
      case 'crash':
        for (const each of leaders) void each.crash()
        this.leaders = [world.start()]
        return undefined
      case 'secondLeader':
        this.#endOverlap()
        this.leaders.push(world.start())
        return undefined
      default:
        return turn satisfies never
    }
  }

  /** Nothing fails or lags any more, one process leads, and there is time. */
  async comeToRest(): Promise<void> {
    const { world } = this
    world.api.fault = () => undefined
    for (const release of this.held.splice(0)) release()
    this.#endOverlap()
    this.#catchUp(this.leaders[0])
    for (let i = 0; i < 3; i++) {
      await world.advance(70_000)
      await world.collectGarbage()
    }
    await world.advance(1_000)
  }

  /** The laws that hold in the end; what breaks one is told. */
  async verdict(): Promise<string[]> {
    const { world, broken } = this
    for (const { metadata } of this.#living()) {
      const { name = '' } = metadata
      const owned = world.owned(name)
      const isRefused = world.claim(name)?.spec.additionalPodMetadata !== undefined
      if (isRefused && owned.length === 0 && world.ready(name)?.reason === 'InvalidMetadata') continue
      if (isRefused || owned.length !== 1 || world.boundTo(name) !== owned[0]) {
        const said = JSON.stringify(world.claim(name)?.status)
        broken.push(`${name} owns ${owned.join(' and ') || 'nothing'} and says ${said}`)
      }
    }
    const uids = new Set(this.#living().map(({ metadata }) => metadata.uid))
    for (const sandbox of world.sandboxes()) {
      const owner = controllerOf(sandbox)
      if (owner?.kind === 'SandboxClaim' && !uids.has(owner.uid)) broken.push(`${sandbox.metadata.name} is leaked`)
    }
    await this.#takeTheRest()
    return broken
  }

  /** Whatever is left in stock can still be had: none stays taken for a claim that did not get it. */
  async #takeTheRest(): Promise<void> {
    const ready = this.world.stock().filter(({ status }) => status !== undefined)
    const names = ready.map((_, i) => `rest-${i}`)
    for (const name of names) {
      await this.world.createClaim(name)
    }
    await this.world.advance(10_000)
    for (const name of names) {
      if (this.world.boundTo(name) === name) this.broken.push(`${name} was started cold beside stock`)
    }
  }

  /** Two lead at the same time for a moment only: the lease is looked at before each write. */
  #endOverlap(): void {
    for (const leader of this.leaders.splice(0, this.leaders.length - 1)) void leader.stepDown()
  }

  #living() {
    return this.world.api.all(sandboxClaimKind)
  }

  #catchUp(leader: ClaimProcess | undefined): void {
    // The watches are independent: claims may be ahead of sandboxes or behind.
    leader?.caches.claims.resume()
    leader?.caches.sandboxes.resume()
  }

  async #remove(kind: typeof sandboxClaimKind | typeof sandboxKind, name: string | undefined): Promise<void> {
    if (name !== undefined) await this.world.remove(kind, name)
  }

  #fault({ verb, plural, name }: Parameters<Fault>[0], fate: Fate): ReturnType<Fault> {
    if (
      verb === 'delete' &&
      plural === 'sandboxes' &&
      this.#living().some((each) => this.world.boundTo(each.metadata.name ?? '') === name)
    )
      this.broken.push(`${name} was deleted while a status named it`)
    if (fate === 'slow') return new Promise((resolve) => this.held.push(() => resolve(undefined)))
    if (fate === 'conflict') return verb === 'patch' || verb === 'delete' ? kubeError('Conflict') : undefined
    // One after the other, so that others can come in between.
    return nextTurn().then(() => errors[fate])
  }

  /** A sandbox that one claim has got never becomes another's. */
  #watchForTheft(): void {
    const ownerOf = new Map<string, string>()
    this.world.api.informer(sandboxKind).onChange(({ object }) => {
      const owner = controllerOf(object)
      if (owner?.kind !== 'SandboxClaim') return
      const { uid = '', name } = object.metadata
      const before = ownerOf.get(uid)
      if (before !== undefined && before !== owner.uid) this.broken.push(`${name} went from one claim to another`)
      ownerOf.set(uid, owner.uid)
    })
  }
}

/** Shared by all runs; a gauge would hold on to each run's queue. */
const metrics: Metrics = { ...createMetrics(), workqueueDepth: { measure: () => () => {} } }

t.test(
  'through faults, delays, restarts and rival leaders, each claim ends with one sandbox or a refusal',
  async (t) => {
    const stories = fc.array(fc.tuple(fc.constantFrom(...turns), fc.nat({ max: 20 })), { minLength: 5, maxLength: 45 })
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: 4 }),
        stories,
        fc.array(fc.constantFrom(...fates), { maxLength: 60 }),
        async (members, story, ahead) => {
          const template = { envVarsInjectionPolicy: 'Allowed' as const }
          const { world, pool, process } = await aClaimWorld(
            { teardown: (end) => void ends.push(end) },
            { members, template, metrics },
          )
          const fate = ahead.values()
          const run = new Run(world, pool, process, () => fate.next().value ?? 'fine')
          try {
            for (const [turn, pick] of story) {
              await run.take(turn, pick)
            }
            await run.comeToRest()
            const broken = await run.verdict()
            if (broken.length > 0) throw new Error(broken.join('\n'))
          } finally {
            for (const release of run.held.splice(0)) release()
            for (const end of ends.splice(0)) await end()
          }
        },
      ),
      { numRuns: Number(process.env['CLAIM_RUNS'] ?? 200) },
    )
    t.pass()
  },
)

const ends: (() => unknown)[] = []
