import type { Sandbox, SandboxClaim, SandboxTemplate } from '../api/kinds.ts'
import { nameHash } from '../api/hash.ts'
import { annotations } from '../api/vocabulary.ts'
import { isOurs } from '../planning/claim-ownership.ts'
import { needsOwnBlueprint, type ClaimView } from '../planning/claim-view.ts'
import { referencedTemplate, templateOf } from '../planning/pools.ts'
import type { Known, Pool } from '../policy/rule.ts'
import type { ReadStore } from '../runtime/store.ts'
import type { Candidates } from './candidates.ts'
import { claimRefusals, templateRefusals } from './claim-judgement.ts'
import type { LiveReads } from './claim-live-reads.ts'
import type { ClaimMemory } from './claim-memory.ts'
import type { ClaimMetrics } from './claim-metrics.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'

export interface ClaimSources {
  readonly deps: ControllerDependencies
  readonly candidates: Candidates
  readonly memory: ClaimMemory
  readonly metrics: ClaimMetrics
}

/** Puts together all that a decision about the claim rests on. No `await`: the caches cannot change meanwhile. */
export function gatherClaim(key: string, live: LiveReads, sources: ClaimSources, now: number): ClaimView {
  const { deps, candidates, memory } = sources
  const { informers } = deps
  const cached = informers.claims.store.get(key)
  const claim = cached && memory.claims.newest(cached)
  const uid = claim?.metadata.uid ?? ''
  const known = memory.owned(uid, informers.sandboxes.store.indexed(indexes.controllerUid, uid), deps.clock.now())
  const owned = claim ? known.sandboxes.filter((sandbox) => isOurs(sandbox, claim, deps.originKeys())) : []
  const pool = live.pool ?? (claim ? cachedPool(claim, informers) : unread)
  const template = live.template ?? cachedTemplate(pool, informers)
  const isUnbound = claim !== undefined && owned.length === 0
  const poolUid = servingPool(pool)
  const stock = isUnbound ? candidates.best(poolUid) : ({ kind: 'empty' } as const)
  const mayStartCold = isUnbound && (stock.kind !== 'candidate' || needsOwnBlueprint(claim))
  return {
    claim,
    owned,
    unseen: known.unseen,
    isDoubtful: known.isDoubtful,
    named: live.named ?? namedAmong(owned, claim),
    pool,
    template,
    refusals: claim ? claimRefusals(claim, { pool, template, isUnbound }, deps, now) : [],
    templateRefusal: mayStartCold ? templateRefusals(pool, template, deps, now) : undefined,
    marked: isUnbound ? markedCandidate(claim, poolUid, sources) : undefined,
    stock,
    lostRaces: live.lostRaces,
    ofName: live.ofName ?? foundOr(informers.sandboxes.store.get(key), { kind: 'missing' }),
    ofSameHash: mayStartCold ? sameHash(claim, informers) : undefined,
    exceededQuota: live.exceededQuota,
    confirmed: live.confirmed,
    rebindAfterLoss: deps.config().claims.rebindAfterLoss,
  }
}

/** UID of the pool, or the empty string, under which there are no candidates, when it hands nothing out. */
export function servingPool(pool: Known<Pool>): string {
  return pool.kind === 'found' && !pool.value.metadata.deletionTimestamp ? (pool.value.metadata.uid ?? '') : ''
}

const unread = { kind: 'unknown', because: 'it was not looked up' } as const

function foundOr<T>(value: T | undefined, otherwise: Known<T>): Known<T> {
  return value === undefined ? otherwise : { kind: 'found', value }
}

function cachedPool(claim: SandboxClaim, informers: ControllerDependencies['informers']): Known<Pool> {
  const { kind, name } = claim.spec.warmPoolRef
  const store: ReadStore<Pool> = kind === 'SandboxSet' ? informers.sets.store : informers.warmPools.store
  return foundOr<Pool>(store.get(`${claim.metadata.namespace}/${name}`), { kind: 'missing' })
}

function cachedTemplate(pool: Known<Pool>, { templates }: ControllerDependencies['informers']): Known<SandboxTemplate> {
  if (pool.kind !== 'found') return pool
  const name = referencedTemplate(pool.value)
  const referenced = name === undefined ? undefined : templates.store.get(`${pool.value.metadata.namespace}/${name}`)
  return foundOr<SandboxTemplate>(templateOf(pool.value, referenced), { kind: 'missing' })
}

function namedAmong(owned: readonly Sandbox[], claim: SandboxClaim | undefined): Known<Sandbox> {
  const name = claim?.status?.sandbox?.name
  return foundOr(
    owned.find((sandbox) => sandbox.metadata.name === name),
    unread,
  )
}

function markedCandidate(
  claim: SandboxClaim,
  poolUid: string,
  { deps, candidates }: ClaimSources,
): Sandbox | undefined {
  const { annotations: notes, labels, namespace } = claim.metadata
  const name = notes?.[annotations.sandboxName] ?? labels?.[annotations.sandboxName]
  const sandbox = name === undefined ? undefined : deps.informers.sandboxes.store.get(`${namespace}/${name}`)
  return sandbox && candidates.isCandidate(sandbox, poolUid) ? sandbox : undefined
}

/** Labels carry the hash of a sandbox's name: two that share it would share their traffic. */
function sameHash({ metadata }: SandboxClaim, { sandboxes }: ControllerDependencies['informers']): Sandbox | undefined {
  const { namespace = '', name = '' } = metadata
  const alike = sandboxes.store.indexed(indexes.nameHash, `${namespace}/${nameHash(name)}`)
  return alike.find((sandbox) => sandbox.metadata.name !== name)
}
