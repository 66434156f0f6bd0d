import type { Sandbox } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { controllerOf, keyOf } from '../kube/object.ts'
import { olderNamesake, recipeBeside } from '../planning/namesake.ts'
import { poolSettings, type Member, type PoolView } from '../planning/pool-view.ts'
import { poolHashOf, referencedTemplate, templateOf, type Pool } from '../planning/pools.ts'
import { recipeOf, type RecipeOrObstacle } from '../planning/recipe.ts'
import { allowance, paceAt } from '../planning/refill-pace.ts'
import { templateRefusal } from '../planning/template-refusal.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'
import { parsePoolKey, type PoolMemory, type PoolNotes, type RecipeBasis, type VerifyOrigin } from './pool-memory.ts'

export interface PoolSources {
  readonly deps: ControllerDependencies
  readonly memory: PoolMemory
  readonly verify: VerifyOrigin
}

export interface GatheredPool {
  readonly view: PoolView
  readonly notes: PoolNotes
  /** Sandboxes that carry the pool's marks without having been made for it. */
  readonly unproven: readonly Sandbox[]
}

/** The pool of a queue key; undefined when it is gone or going, or its namespace is: nothing is left to do then. */
export function livePool(key: string, { deps, memory }: PoolSources): Pool | undefined {
  const { informers } = deps
  const parsed = parsePoolKey(key)
  const pool: Pool | undefined = (parsed.kind === 'SandboxSet' ? informers.sets : informers.warmPools).store.get(
    parsed.key,
  )
  if (!pool) memory.forget(key)
  const namespace = pool && informers.namespaces.store.get(pool.metadata.namespace ?? '')
  if (!pool || pool.metadata.deletionTimestamp || namespace?.metadata.deletionTimestamp) return undefined
  return pool
}

/** Puts together all that a plan for the pool rests on. No `await`: the caches cannot change meanwhile. */
export function gatherPool(cached: Pool, sources: PoolSources, now: number): GatheredPool {
  const { deps, memory } = sources
  const pool = memory.answers.newest(cached)
  const notes = memory.notesOf(pool)
  const config = deps.config()
  const { members, unproven } = membersOf(pool, sources)
  const { issuedCreates, issuedDeletes } = issued(pool, members, sources)
  notes.pace = paceAt(notes.pace, config.pools.maxRefillPerSecond, now)
  const podOf = (sandbox: Sandbox) => {
    const pod = deps.informers.pods.store.get(keyOf(sandbox))
    return pod && controllerOf(pod)?.uid === sandbox.metadata.uid ? pod : undefined
  }
  const view: PoolView = {
    pool,
    ...poolSettings(pool, config),
    recipe: recipeBeside(olderNamesake(pool, namesakesOf(pool, deps)), pool, currentRecipe(pool, notes, deps, now)),
    members,
    podOf,
    issuedCreates,
    issuedDeletes,
    history: notes.history,
    allowance: allowance(notes.pace, config.pools.maxRefillPerSecond),
  }
  return { view, notes, unproven }
}

/** The pools of either kind whose hash is that of the pool, itself included. */
export function namesakesOf(pool: Pool, deps: ControllerDependencies): Iterable<Pool> {
  return poolsOfHash(pool.metadata.namespace ?? '', poolHashOf(pool), deps)
}

/** The pools that the value of a Sandbox's pool label may stand for. */
export function* poolsOfHash(namespace: string, hash: string, { informers }: ControllerDependencies): Iterable<Pool> {
  const key = `${namespace}/${hash}`
  yield* informers.warmPools.store.indexed(indexes.poolHash, key)
  yield* informers.sets.store.indexed(indexes.poolHash, key)
}

/** Who is the pool's, among the Sandboxes that carry its label: by controller UID and proof, never by the label. */
function membersOf(pool: Pool, { deps, memory, verify }: PoolSources): { members: Member[]; unproven: Sandbox[] } {
  const uid = pool.metadata.uid ?? ''
  const members: Member[] = []
  const unproven: Sandbox[] = []
  const marked = deps.informers.sandboxes.store.indexed(indexes.pool, `${pool.metadata.namespace}/${poolHashOf(pool)}`)
  for (const sandbox of marked) {
    const owner = controllerOf(sandbox)
    // Someone else's: of a pool whose name hashes alike, or of a predecessor whose stock is being collected.
    if (sandbox.metadata.deletionTimestamp || (owner && owner.uid !== uid)) continue
    const verdict = verify(sandbox, uid)
    if (verdict === 'valid' || (verdict === 'unknown-key' && owner)) {
      members.push({ sandbox, isOrphan: !owner, isProvable: verdict === 'valid' })
    } else if (!memory.isExpected(sandbox)) {
      unproven.push(sandbox)
    }
  }
  return { members, unproven }
}

/** Our own writes that the cache does not show; what it does show is crossed off here. */
function issued(pool: Pool, members: readonly Member[], { deps, memory, verify }: PoolSources) {
  const { uid = '', namespace = '' } = pool.metadata
  for (const name of memory.expectations.pendingCreates(uid)) {
    const sandbox = deps.informers.sandboxes.store.get(`${namespace}/${name}`)
    if (sandbox) memory.see(sandbox, verify)
  }
  const pendingDeletes = memory.expectations.pendingDeletes(uid)
  if (pendingDeletes.size > 0) {
    const present = new Set(members.map(({ sandbox }) => sandbox.metadata.uid))
    for (const deleted of pendingDeletes) {
      if (!present.has(deleted)) memory.expectations.observeDelete(uid, deleted)
    }
  }
  return {
    issuedCreates: memory.expectations.pendingCreates(uid).size,
    issuedDeletes: memory.expectations.pendingDeletes(uid),
  }
}

/** Made anew when something that it is made from has changed: judging a template by the rules is not for every pass. */
function currentRecipe(pool: Pool, notes: PoolNotes, deps: ControllerDependencies, now: number): RecipeOrObstacle {
  const { informers } = deps
  const { namespace = '', generation } = pool.metadata
  const name = referencedTemplate(pool)
  const config = deps.config()
  const basis: RecipeBasis = {
    generation,
    referenced: name === undefined ? undefined : informers.templates.store.get(`${namespace}/${name}`),
    namespaceLabels: informers.namespaces.store.get(namespace)?.metadata.labels,
    config,
  }
  if (notes.recipe && isSameBasis(notes.recipe.basis, basis)) return notes.recipe.recipe
  const refusal = templateRefusal(pool, basis.referenced, {
    config,
    now,
    namespace: { labels: basis.namespaceLabels ?? {} },
  })
  const recipe = recipeOf(pool, templateOf(pool, basis.referenced), { config, refusal })
  notes.recipe = { basis, recipe }
  return recipe
}

function isSameBasis(a: RecipeBasis, b: RecipeBasis): boolean {
  return (
    a.generation === b.generation &&
    a.referenced === b.referenced &&
    a.config === b.config &&
    a.namespaceLabels?.[labels.namespaceMode] === b.namespaceLabels?.[labels.namespaceMode]
  )
}
