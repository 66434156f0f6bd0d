import type { Sandbox, SandboxTemplate } from '../api/kinds.ts'
import type { Config } from '../config/schema.ts'
import { controllerOf, keyOf } from '../kube/object.ts'
import { candidateWorth } from '../planning/candidate-worth.ts'
import { freshnessJudge } from '../planning/freshness.ts'
import { originVerifier } from '../planning/origin.ts'
import { poolHashOf, referencedTemplate, templateOf, type Pool } from '../planning/pools.ts'
import { recipeOf } from '../planning/recipe.ts'
import type { Change } from '../runtime/informer.ts'
import { Candidates, type Appraise } from './candidates.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'

type IsFresh = ReturnType<typeof freshnessJudge>

/** The candidates of all pools, judged by what the caches say of their pools and templates, and judged again when that changes. */
export function createCandidates(deps: ControllerDependencies): Candidates {
  const { sandboxes, warmPools, sets, templates, pods } = deps.informers
  const verify = originVerifier(deps.originKeys)
  const judges = rememberedJudges(deps)

  const appraise: Appraise = (sandbox) => {
    const pool = poolOf(sandbox)
    if (!pool) return undefined
    const poolUid = pool.metadata.uid ?? ''
    const isProven = verify(sandbox, poolUid) === 'valid'
    const isFresh = judges.of(pool)({ sandbox, isOrphan: false })
    const worth = candidateWorth(sandbox, pool, { isProven, isFresh, hasOwnPod: hasOwnPod(sandbox, deps) })
    return worth && { poolUid, worth }
  }
  const poolOf = (sandbox: Sandbox): Pool | undefined => {
    const owner = controllerOf(sandbox)
    const key = `${sandbox.metadata.namespace}/${owner?.name}`
    if (owner?.kind === 'SandboxWarmPool') return warmPools.store.get(key)
    if (owner?.kind === 'SandboxSet') return sets.store.get(key)
    return undefined
  }

  const candidates = new Candidates(sandboxes, appraise)
  const reappraise = (pool: Pool) =>
    candidates.reappraise(sandboxes.store.indexed(indexes.pool, `${pool.metadata.namespace}/${poolHashOf(pool)}`))
  const followPools = (change: Change<Pool>) => {
    if (change.kind === 'deleted') judges.forget(change.object)
    if (change.kind !== 'updated' || isOtherSpec(change.object, change.previous)) reappraise(change.object)
  }
  warmPools.onChange(followPools)
  sets.onChange(followPools)
  templates.onChange(({ object }) => {
    for (const pool of warmPools.store.indexed(indexes.template, keyOf(object))) reappraise(pool)
    for (const set of sets.store.indexed(indexes.template, keyOf(object))) reappraise(set)
  })
  pods.onChange((change) => {
    if (change.kind === 'updated' && change.object.metadata.uid === change.previous.metadata.uid) return
    const sandbox = sandboxes.store.get(keyOf(change.object))
    if (sandbox) candidates.reappraise([sandbox])
  })
  deps.onConfigChange(() => {
    for (const pool of [...warmPools.store.values(), ...sets.store.values()]) reappraise(pool)
  })
  return candidates
}

/**
 * An owner reference proves nothing, since anyone can write one: the Pod of a candidate is the one whose UID the Sandbox
 * controller recorded. Another implementation records none, so with it this check is left out.
 */
function hasOwnPod({ metadata, status }: Sandbox, { informers, config }: ControllerDependencies): boolean {
  if (config().sandboxes.controller === 'external') return true
  const pod = informers.pods.store.get(`${metadata.namespace}/${metadata.name}`)
  return status?.podUID !== undefined && (pod === undefined || pod.metadata.uid === status.podUID)
}

/** A judge is made anew when the pool's spec, its template or the configuration has changed: not for each sandbox. */
function rememberedJudges({ informers, config }: ControllerDependencies) {
  type Basis = { generation: number | undefined; template: SandboxTemplate | undefined; config: Config }
  const judges = new Map<string, { basis: Basis; isFresh: IsFresh }>()
  const of = (pool: Pool): IsFresh => {
    const uid = pool.metadata.uid ?? ''
    const name = referencedTemplate(pool)
    const referenced =
      name === undefined ? undefined : informers.templates.store.get(`${pool.metadata.namespace}/${name}`)
    const basis = { generation: pool.metadata.generation, template: referenced, config: config() }
    const known = judges.get(uid)
    const isSame =
      known?.basis.generation === basis.generation &&
      known?.basis.template === basis.template &&
      known?.basis.config === basis.config
    if (known && isSame) return known.isFresh
    const isFresh = freshnessJudge(recipeOf(pool, templateOf(pool, referenced), { config: basis.config }))
    judges.set(uid, { basis, isFresh })
    return isFresh
  }
  return { of, forget: (pool: Pool) => judges.delete(pool.metadata.uid ?? '') }
}

function isOtherSpec(pool: Pool, previous: Pool): boolean {
  return (
    pool.metadata.generation !== previous.metadata.generation ||
    pool.metadata.deletionTimestamp !== previous.metadata.deletionTimestamp ||
    pool.metadata.uid !== previous.metadata.uid
  )
}
