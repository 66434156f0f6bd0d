import type { Pod } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import { conditionTypes, labels } from '../api/vocabulary.ts'
import { controllerOf, keyOf, type KubeObject } from '../kube/object.ts'
import { findCondition } from '../planning/conditions.ts'
import { memberTrouble } from '../planning/member-trouble.ts'
import type { Pool } from '../planning/pools.ts'
import type { Change } from '../runtime/informer.ts'
import type { WorkQueue } from '../runtime/work-queue.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'
import { namesakesOf, poolsOfHash, type PoolSources } from './pool-gather.ts'
import { poolKey, poolKeyOf } from './pool-memory.ts'

/** News about sandboxes come in swarms; a pass for each would cost more than the wait. Milliseconds. */
const gatherNewsMs = 10

/**
 * Queues the pools that a change matters to: their own spec, their template, a sandbox that is or was theirs, its Pod, the
 * mode of their namespace, the configuration. Status writes of pools wake nobody.
 */
export function wakePools({ deps, memory, verify }: PoolSources, queue: WorkQueue): void {
  const { sandboxes, warmPools, sets, templates, pods, namespaces } = deps.informers

  const followPools = (change: Change<Pool>) => {
    if (!hasNewSpec(change)) return
    const key = poolKey(change.object)
    queue.add(key)
    if (change.kind === 'updated') return
    // Which of those whose names hash alike is the oldest may be another one now.
    for (const other of namesakesOf(change.object, deps)) if (poolKey(other) !== key) queue.add(poolKey(other))
  }
  warmPools.onChange(followPools)
  sets.onChange(followPools)

  templates.onChange((change) => {
    if (!hasNewSpec(change)) return
    for (const pool of warmPools.store.indexed(indexes.template, keyOf(change.object))) queue.add(poolKey(pool))
    for (const set of sets.store.indexed(indexes.template, keyOf(change.object))) queue.add(poolKey(set))
  })

  const wakeOwner = (sandbox: Sandbox) => {
    const { namespace = '', labels: own } = sandbox.metadata
    const owner = controllerOf(sandbox)
    if (owner?.kind === 'SandboxWarmPool' || owner?.kind === 'SandboxSet') {
      queue.addAfter(poolKeyOf(owner.kind, namespace, owner.name), gatherNewsMs)
    }
    // An orphan, or one that passes itself off as the pool's.
    const hash = owner ? undefined : own?.[labels.warmPool]
    if (hash === undefined) return
    for (const pool of poolsOfHash(namespace, hash, deps)) queue.addAfter(poolKey(pool), gatherNewsMs)
  }
  sandboxes.onChange((change) => {
    const { object } = change
    if (change.kind === 'deleted') memory.observeCreate(object.metadata.namespace ?? '', object.metadata.name ?? '')
    else memory.see(object, verify)
    if (change.kind !== 'updated') return wakeOwner(object)
    if (!isNews(change.object, change.previous)) return
    wakeOwner(object)
    // Its pool has lost it: to a claim, to deletion, or as an orphan.
    wakeOwner(change.previous)
  })

  pods.onChange((change) => {
    const owner = controllerOf(change.object)
    const sandbox = owner && sandboxes.store.get(`${change.object.metadata.namespace}/${owner.name}`)
    if (!sandbox) return
    const before = change.kind === 'updated' ? troubleOf(sandbox, change.previous) : undefined
    if (troubleOf(sandbox, change.object) !== before) wakeOwner(sandbox)
  })

  const wakeAll = (isConcerned: (pool: Pool) => boolean) => {
    for (const pool of allPools(deps)) if (isConcerned(pool)) queue.add(poolKey(pool))
  }
  namespaces.onChange((change) => {
    if (change.kind === 'updated') wakeAll((pool) => pool.metadata.namespace === change.object.metadata.name)
  })
  deps.onConfigChange(() => wakeAll(() => true))
}

/** Every pool in the caches, of either kind. */
export function* allPools({ informers }: Pick<ControllerDependencies, 'informers'>): Iterable<Pool> {
  yield* informers.warmPools.store.values()
  yield* informers.sets.store.values()
}

function hasNewSpec(change: Change<KubeObject>): boolean {
  if (change.kind !== 'updated') return true
  const { object, previous } = change
  return (
    object.metadata.generation !== previous.metadata.generation ||
    object.metadata.deletionTimestamp !== previous.metadata.deletionTimestamp ||
    object.metadata.uid !== previous.metadata.uid
  )
}

/** True when a pool may judge the sandbox differently: by its spec, its owner, its labels, or what its status says of it. */
function isNews(sandbox: Sandbox, previous: Sandbox): boolean {
  return (
    hasNewSpec({ kind: 'updated', object: sandbox, previous }) ||
    controllerOf(sandbox)?.uid !== controllerOf(previous)?.uid ||
    !isSameMap(sandbox.metadata.labels, previous.metadata.labels) ||
    sandbox.status?.phase !== previous.status?.phase ||
    (sandbox.status?.podIPs?.length ?? 0) !== (previous.status?.podIPs?.length ?? 0) ||
    [conditionTypes.ready, conditionTypes.finished, conditionTypes.podScheduled].some((type) => {
      const now = findCondition(sandbox.status?.conditions, type)
      const before = findCondition(previous.status?.conditions, type)
      return now?.status !== before?.status || now?.reason !== before?.reason
    })
  )
}

function isSameMap(a: Record<string, string> = {}, b: Record<string, string> = {}): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}

function troubleOf(sandbox: Sandbox, pod: Pod): string | undefined {
  return memberTrouble(sandbox, pod)?.reason
}
