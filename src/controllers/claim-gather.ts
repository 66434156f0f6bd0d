import {
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxClaim,
  type SandboxTemplate,
} from '../api/kinds.ts'
import { annotations } from '../api/vocabulary.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import { controllerOf, type KubeObject, type ObjectRef, type Resource } from '../kube/object.ts'
import { verifyBound, verifyOrigin } from '../planning/origin.ts'
import type { ClaimView, Confirmation } from '../planning/plan-claim.ts'
import { referencedTemplate, templateOf } from '../planning/pools.ts'
import { evaluate } from '../policy/evaluate.ts'
import type { Finding, Known, Pool } from '../policy/rule.ts'
import type { ReadStore } from '../runtime/store.ts'
import type { Candidates } from './candidates.ts'
import type { ClaimMemory } from './claim-memory.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'

/** What this pass has read from the API server itself; it takes precedence over the caches. */
export interface LiveReads {
  readonly confirmed: Set<Confirmation>
  named?: Known<Sandbox>
  pool?: Known<Pool>
  template?: Known<SandboxTemplate>
  ofName?: Known<Sandbox>
}

export interface ClaimSources {
  readonly deps: ControllerDependencies
  readonly candidates: Candidates
  readonly memory: ClaimMemory
}

/** Puts together all that a decision about the claim rests on. No `await`: the caches cannot change meanwhile. */
export function gatherClaim(key: string, live: LiveReads, sources: ClaimSources, now: number): ClaimView {
  const { deps, candidates, memory } = sources
  const { informers } = deps
  const cached = informers.claims.store.get(key)
  const claim = cached && memory.claims.newest(cached)
  const uid = claim?.metadata.uid ?? ''
  const sandboxes = informers.sandboxes.store.indexed(indexes.controllerUid, uid)
  const owned = claim ? memory.owned(uid, sandboxes, now).filter((sandbox) => isOurs(sandbox, claim, deps)) : []
  const pool = live.pool ?? (claim ? cachedPool(claim, informers) : unread)
  const template = live.template ?? cachedTemplate(pool, informers)
  const isUnbound = claim !== undefined && owned.length === 0
  const poolUid = pool.kind === 'found' && !pool.value.metadata.deletionTimestamp ? (pool.value.metadata.uid ?? '') : ''
  const isUsable = (sandbox: Sandbox) => !isExpired(sandbox, now) && hasItsOwnPod(sandbox, deps)
  return {
    claim,
    owned,
    named: live.named ?? namedAmong(owned, claim),
    pool,
    template,
    refusals: isUnbound ? refusalsOf(claim, pool, template, deps, now) : [],
    marked: isUnbound ? markedCandidate(claim, poolUid, sources) : undefined,
    stock: isUnbound ? candidates.best(poolUid, isUsable) : { kind: 'empty' },
    ofName: live.ofName ?? foundOr(informers.sandboxes.store.get(key), { kind: 'missing' }),
    confirmed: live.confirmed,
    rebindAfterLoss: deps.config().claims.rebindAfterLoss,
  }
}

/** Reads from the API server what the plan wants to be sure of. A failed read leaves it unknown. */
export async function confirm(
  what: Confirmation,
  claim: SandboxClaim,
  live: LiveReads,
  { deps, memory }: ClaimSources,
): Promise<void> {
  const { client } = deps
  const namespace = claim.metadata.namespace ?? ''
  live.confirmed.add(what)
  switch (what) {
    case 'named-sandbox': {
      const name = claim.status?.sandbox?.name ?? ''
      const sandbox = await readLive(client, sandboxKind, { namespace, name })
      const isOwn = sandbox.kind === 'found' && isOurs(sandbox.value, claim, deps)
      if (isOwn) memory.remember(claim.metadata.uid ?? '', sandbox.value, deps.clock.now())
      live.named = sandbox.kind === 'found' && !isOwn ? { kind: 'missing' } : sandbox
      return
    }
    case 'pool-and-template': {
      const { kind, name } = claim.spec.warmPoolRef
      const poolKind: Resource<Pool> = kind === 'SandboxSet' ? sandboxSetKind : sandboxWarmPoolKind
      live.pool = await readLive(client, poolKind, { namespace, name })
      live.template = await liveTemplate(live.pool, client)
      return
    }
    case 'sandbox-of-name': {
      const sandbox = await readLive(client, sandboxKind, { namespace, name: claim.metadata.name ?? '' })
      const isOwn = sandbox.kind === 'found' && isOurs(sandbox.value, claim, deps)
      if (isOwn) memory.remember(claim.metadata.uid ?? '', sandbox.value, deps.clock.now())
      live.ofName = sandbox
      return
    }
    default:
      return what satisfies never
  }
}

/**
 * Controlled by the claim's UID, with a proof that the controllers made or bound it for this claim. When the key of a
 * proof is lost, the name in the status, which only the controllers write, stands in for it.
 */
export function isOurs(sandbox: Sandbox, claim: SandboxClaim, { originKeys }: ControllerDependencies): boolean {
  const uid = claim.metadata.uid ?? ''
  if (controllerOf(sandbox)?.uid !== uid) return false
  const keys = originKeys()
  const bound = verifyBound(keys, sandbox, uid)
  const verdict = bound === 'invalid' ? verifyOrigin(keys, sandbox, uid) : bound
  return verdict === 'valid' || (verdict === 'unknown-key' && claim.status?.sandbox?.name === sandbox.metadata.name)
}

const unread = { kind: 'unknown', because: 'it was not looked up' } as const

function foundOr<T>(value: T | undefined, otherwise: Known<T>): Known<T> {
  return value === undefined ? otherwise : { kind: 'found', value }
}

async function readLive<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  ref: ObjectRef,
): Promise<Known<T>> {
  try {
    return { kind: 'found', value: await client.get(resource, ref) }
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return { kind: 'missing' }
    throw error
  }
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

async function liveTemplate(pool: Known<Pool>, client: KubeClient): Promise<Known<SandboxTemplate>> {
  if (pool.kind !== 'found') return pool
  const name = referencedTemplate(pool.value)
  const { namespace = '' } = pool.value.metadata
  const referenced = name === undefined ? undefined : await readLive(client, sandboxTemplateKind, { namespace, name })
  const template = templateOf(pool.value, referenced?.kind === 'found' ? referenced.value : undefined)
  return foundOr<SandboxTemplate>(template, { kind: 'missing' })
}

function namedAmong(owned: readonly Sandbox[], claim: SandboxClaim | undefined): Known<Sandbox> {
  const name = claim?.status?.sandbox?.name
  return foundOr(
    owned.find((sandbox) => sandbox.metadata.name === name),
    unread,
  )
}

/** What enforced rules have against a stored claim; rules that only matter at admission name no Ready reason. */
function refusalsOf(
  claim: SandboxClaim,
  pool: Known<Pool>,
  template: Known<SandboxTemplate>,
  deps: ControllerDependencies,
  now: number,
): readonly Finding[] {
  const namespace = claim.metadata.namespace ?? ''
  const username = claim.metadata.annotations?.[annotations.requestedBy] ?? ''
  const findings = evaluate(
    { kind: 'SandboxClaim', operation: 'CREATE', namespace, object: claim, actor: 'user', username },
    { now, config: deps.config(), facts: { pool, template } },
    { labels: deps.informers.namespaces.store.get(namespace)?.metadata.labels ?? {} },
  )
  return findings.filter((finding) => finding.mode === 'enforce' && finding.claimReason !== undefined)
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

function isExpired(sandbox: Sandbox, now: number): boolean {
  return sandbox.spec.shutdownTime !== undefined && Date.parse(sandbox.spec.shutdownTime) <= now
}

/**
 * An owner reference proves nothing, since anyone can write one: the Pod of a candidate is the one whose UID the Sandbox
 * controller recorded. Another implementation records none, so with it this check is left out.
 */
function hasItsOwnPod(sandbox: Sandbox, { informers, config }: ControllerDependencies): boolean {
  if (config().sandboxes.controller === 'external') return true
  const recorded = sandbox.status?.podUID
  const pod = informers.pods.store.get(`${sandbox.metadata.namespace}/${sandbox.metadata.name}`)
  return recorded !== undefined && (pod === undefined || pod.metadata.uid === recorded)
}
