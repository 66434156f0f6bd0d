import { sandboxClaimKind, type SandboxClaim } from '../../src/api/kinds.ts'
import { conditionTypes, labels } from '../../src/api/vocabulary.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import type { KubeObject, Resource } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { follow, type Follower } from './follower.ts'
import type { Stock } from './pool.ts'
import { namespace, type Stage } from './stage.ts'

/** How requests are spread: all at once, or one each so many milliseconds whether or not the one before has been answered. */
export type Pace = { readonly kind: 'at-once' } | { readonly kind: 'steady'; readonly everyMs: number }

export const atOnce: Pace = { kind: 'at-once' }
export const tenPerSecond: Pace = { kind: 'steady', everyMs: 100 }

export interface Timing {
  readonly name: string
  /** From sending the create until the watch showed what was waited for. */
  readonly tookMs: number
}

/** Creates claims on a pool and times each until a watch shows it Ready. */
export interface Claimant {
  readonly claims: Follower<SandboxClaim>
  claim(pool: string, count: number, pace: Pace): Promise<Timing[]>
  /** How many of these claims have a sandbox that was warm. */
  countWarm(timings: readonly Timing[], stock: Stock): number
  /** Deletes every claim, and waits until their sandboxes are gone. */
  clear(stock: Stock): Promise<void>
}

/** Names are never used twice: a claim of a name that was taken waits for the end of its predecessor. */
let serial = 0

export async function createClaimant(stage: Stage): Promise<Claimant> {
  const claims = await follow(stage, sandboxClaimKind)
  const timer = timeUntil(stage, sandboxClaimKind, claims, isReady)
  return {
    claims,
    claim: (pool, count, pace) =>
      timer(count, pace, (name) => ({ metadata: { namespace, name }, spec: { warmPoolRef: { name: pool } } })),
    countWarm: (timings, { sandboxes }) =>
      timings.filter(({ name }) => {
        const sandbox = claims.store.get(`${namespace}/${name}`)?.status?.sandbox?.name
        return sandboxes.store.get(`${namespace}/${sandbox}`)?.metadata.labels?.[labels.launchType] === 'warm'
      }).length,
    async clear({ sandboxes }) {
      await Promise.all([...claims.store.values()].map((claim) => remove(stage, sandboxClaimKind, claim)))
      await claims.when('the end of the claims', () => claims.store.size === 0)
      const isClaimed = ({ metadata }: KubeObject) => metadata.labels?.[labels.claimUid] !== undefined
      await sandboxes.when('the end of their sandboxes', () => ![...sandboxes.store.values()].some(isClaimed))
    },
  }
}

/** An object that nobody but the API server and this client has to do with. */
const configMaps: Resource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true }

/** The reference for claims: as many bare objects at the same pace, each from its create until a watch shows it. */
export async function bareRoundTrips(stage: Stage, count: number, pace: Pace): Promise<Timing[]> {
  const followed = await follow(stage, configMaps)
  try {
    const timings = await timeUntil(
      stage,
      configMaps,
      followed,
      () => true,
    )(count, pace, (name) => ({ metadata: { namespace, name } }))
    await Promise.all(timings.map(({ name }) => remove(stage, configMaps, { metadata: { name } })))
    return timings
  } finally {
    followed.stop()
  }
}

/** Creates objects and times each from just before its create is sent until the watch shows it `done`. */
function timeUntil<T extends KubeObject>(
  { client }: Stage,
  resource: Resource<T>,
  followed: Follower<T>,
  isDone: (object: T) => boolean,
) {
  const waiting = new Map<string, (seenAt: number) => void>()
  followed.onChange(({ kind, object }) => {
    const { name = '' } = object.metadata
    if (kind === 'deleted' || !waiting.has(name) || !isDone(object)) return
    waiting.get(name)?.(performance.now())
    waiting.delete(name)
  })
  const createOne = async (name: string, object: T): Promise<Timing> => {
    const seen = new Promise<number>((resolve) => waiting.set(name, resolve))
    const sentAt = performance.now()
    await client.create(resource, object, { timeoutMs: 60_000 })
    return { name, tookMs: (await seen) - sentAt }
  }
  return async (count: number, pace: Pace, make: (name: string) => T): Promise<Timing[]> => {
    if (pace.kind === 'at-once') await warmConnections(client, count)
    const startedAt = performance.now()
    const creations = Array.from({ length: count }, async (_, index) => {
      // By the clock and not by the last one's end: a slow server must not be spared requests.
      if (pace.kind === 'steady') await until(startedAt + index * pace.everyMs)
      const name = `bench-${++serial}`
      return createOne(name, make(name))
    })
    return Promise.all(creations)
  }
}

/** Opens as many connections as a burst will use: a handshake is not what is measured. */
async function warmConnections(client: Stage['client'], count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => client.list(configMaps, { namespace, limit: 1 })))
}

async function until(time: number): Promise<void> {
  const delay = time - performance.now()
  if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay))
}

async function remove<T extends KubeObject>({ client }: Stage, resource: Resource<T>, object: KubeObject) {
  const { name = '' } = object.metadata
  try {
    await client.delete(resource, { namespace, name }, { timeoutMs: 60_000 })
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error
  }
}

function isReady({ status }: SandboxClaim): boolean {
  return findCondition(status?.conditions, conditionTypes.ready)?.status === 'True'
}
