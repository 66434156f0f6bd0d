import { nameHash } from '../api/hash.ts'
import { sandboxKind, type Sandbox } from '../api/kinds.ts'
import { annotations } from '../api/vocabulary.ts'
import { isKubeError, type KubeError } from '../kube/errors.ts'
import { controllerOf } from '../kube/object.ts'
import { signedBlueprint, signedPodMetadata, signOrigin } from '../planning/origin.ts'
import type { PoolView } from '../planning/pool-view.ts'
import type { Pool } from '../planning/pools.ts'
import { buildMember, memberName, type Recipe } from '../planning/recipe.ts'
import { slowStartBatch, type SlowStartResult } from '../runtime/slow-start.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'
import type { PoolSources, GatheredPool } from './pool-gather.ts'

/** Refilling lets waiting claims go first, but no longer than this, in milliseconds. */
export const longestYieldMs = 2_000
/** While it does, it looks this often whether they are through. */
export const yieldStepMs = 20

/**
 * Sends the creates whose outcome is unknown again, and `count` new ones, in batches of 1, 2, 4, 8 … The first batch
 * with a failure is the last. Between the requests, claims that wait to be bound go first.
 */
export async function createMembers(
  count: number,
  gathered: GatheredPool,
  sources: PoolSources,
  signal: AbortSignal,
): Promise<SlowStartResult> {
  const { deps } = sources
  const { view, notes } = gathered
  const { recipe } = view
  if (recipe.kind === 'obstacle') return { done: 0 }
  const members = newMembers(count, recipe, view, sources)
  const isSurplus = view.members.length + view.issuedCreates > view.desired
  const repeated = isSurplus ? [] : [...notes.unresolved.values()]
  const yieldUntil = (notes.yieldingSince ?? deps.clock.monotonic()) + longestYieldMs
  return slowStartBatch(repeated.length + members.length, 1, async (index) => {
    while (deps.claimsWaiting() > 0 && deps.clock.monotonic() < yieldUntil) {
      await deps.clock.sleep(yieldStepMs, signal)
    }
    const member = index < repeated.length ? repeated[index] : members[index - repeated.length]
    if (member) await createMember(member, gathered, sources)
  })
}

/** Names are chosen here, before anything is sent, so that a create can be repeated and is known before it is seen. */
function newMembers(count: number, recipe: Recipe, { pool }: PoolView, { deps }: PoolSources): Sandbox[] {
  const { namespace = '', uid: ownerUid = '' } = pool.metadata
  const made = { blueprint: signedBlueprint(recipe.prototype), podMetadata: signedPodMetadata(recipe.prototype) }
  const key = deps.originKeys().current
  return Array.from({ length: count }, () => {
    const name = freeName(pool, deps)
    return buildMember(recipe, name, signOrigin(key, { namespace, ownerUid, name, ...made }))
  })
}

/** Not a name whose hash a sandbox has already: labels tell sandboxes apart by it, so admission would refuse it. */
function freeName({ metadata: { namespace = '', name: poolName = '' } }: Pool, deps: ControllerDependencies): string {
  for (;;) {
    const name = memberName(poolName, deps.random)
    const [taken] = deps.informers.sandboxes.store.indexed(indexes.nameHash, `${namespace}/${nameHash(name)}`)
    if (!taken) return name
  }
}

async function createMember(member: Sandbox, { view, notes }: GatheredPool, sources: PoolSources): Promise<void> {
  const { deps, memory } = sources
  const { namespace = '', name = '' } = member.metadata
  const { uid = '' } = view.pool.metadata
  // Recorded before it is sent, with nothing in between: the watch may be faster than the reply.
  memory.expectCreate(uid, namespace, name)
  let stored: Sandbox
  try {
    stored = await deps.client.create(sandboxKind, member)
  } catch (error) {
    if (isKubeError(error, 'OutcomeUnknown', 'Aborted')) {
      notes.unresolved.set(name, member)
      throw error
    }
    if (!isKubeError(error, 'AlreadyExists')) {
      memory.observeCreate(namespace, name)
      throw error
    }
    notes.unresolved.set(name, member)
    stored = await existing(member, error, uid, sources)
  }
  notes.unresolved.delete(name)
  await signWhatIsStored(member, stored, { view, notes }, sources)
}

/** The Sandbox that already has the chosen name, when it is the one that an earlier attempt made. */
async function existing(member: Sandbox, taken: KubeError, ownerUid: string, { deps, memory, verify }: PoolSources) {
  const { namespace = '', name = '' } = member.metadata
  const stored = await deps.client.get(sandboxKind, { namespace, name }).catch((error: unknown) => {
    if (!isKubeError(error, 'NotFound')) throw error
  })
  // A claim may own it by now: then the proof tells. Another webhook may have changed it: then the owner does, with
  // the very signature that was sent.
  const isOurs =
    stored &&
    (verify(stored, ownerUid) === 'valid' || (controllerOf(stored)?.uid === ownerUid && isSignedLike(stored, member)))
  if (isOurs) return stored
  memory.observeCreate(namespace, name)
  throw taken
}

function isSignedLike(stored: Sandbox, member: Sandbox): boolean {
  return stored.metadata.annotations?.[annotations.origin] === member.metadata.annotations?.[annotations.origin]
}

/** Another mutating webhook may have changed what is signed on its way: then the proof is made for what was stored. */
async function signWhatIsStored(
  member: Sandbox,
  stored: Sandbox,
  { view, notes }: Pick<GatheredPool, 'view' | 'notes'>,
  { deps, memory, verify }: PoolSources,
): Promise<void> {
  const { uid: ownerUid = '' } = view.pool.metadata
  if (!isSignedLike(stored, member) || verify(stored, ownerUid) !== 'invalid') return
  const { namespace = '', name = '', uid } = stored.metadata
  const made = { blueprint: signedBlueprint(stored), podMetadata: signedPodMetadata(stored) }
  const origin = signOrigin(deps.originKeys().current, { namespace, ownerUid, name, ...made })
  // Stock from now on, though the cache cannot show that before it shows the proof.
  memory.expectCreate(ownerUid, namespace, name)
  try {
    // Without a version: the Sandbox controller may have written a status since. The proof fits only what it is made for.
    const patch = { metadata: { uid, annotations: { [annotations.origin]: origin } } }
    await deps.client.patch(sandboxKind, { namespace, name }, patch, { type: 'merge' })
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return memory.observeCreate(namespace, name)
    notes.unresolved.set(name, member)
    throw error
  }
}
