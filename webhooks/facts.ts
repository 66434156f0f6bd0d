import { namespaces, pods, type NetworkPolicy, type Pod } from '../src/api/core.ts'
import {
  sandboxClaimKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type SandboxClaim,
  type SandboxSet,
  type SandboxTemplate,
} from '../src/api/kinds.ts'
import type { Config } from '../src/config/schema.ts'
import type { KubeClient } from '../src/kube/client.ts'
import { controllerOf, type KubeObject } from '../src/kube/object.ts'
import type { Facts, Known, Pool, Subject } from '../src/policy/rule.ts'
import type { Clock } from '../src/runtime/clock.ts'
import type { IndexFunction, ReadStore } from '../src/runtime/store.ts'
import { ClaimCreations } from './claim-creations.ts'
import type { Deadline } from './deadline.ts'
import { podSourceOf, tryPod } from './dry-run-pod.ts'
import { cachedFind, inCache, liveFind, type Find } from './lookup.ts'
import { sameHash, type HashedStores } from './name-hashes.ts'

/** What is known around one change. */
export interface Surroundings {
  readonly facts: Facts
  readonly namespaceLabels: Readonly<Record<string, string>>
  /** Whether a refusal would rest on cached objects that a fresh read might contradict. */
  readonly mayBeOld: boolean
}

/** Where the rules' facts come from. Nothing rejects: what cannot be found out in time is unknown. */
export interface FactSource {
  /** From the caches; a pool, a template or a Pod that they lack is looked for once in the API. */
  gather(subject: Subject, deadline: Deadline): Promise<Surroundings>
  /** The same, with the pool, the template and the namespace's labels read anew: for before a refusal. */
  confirm(subject: Subject, earlier: Surroundings, deadline: Deadline): Promise<Surroundings>
  /** Counts a claim that was let in towards its user's rate. */
  noteClaimCreated(username: string): void
}

/** Index of claims by namespace; the store of claims that the gate is given declares it. */
export const namespaceIndex = 'namespace'
export const byNamespace: IndexFunction<KubeObject> = ({ metadata }) => [metadata.namespace ?? '']
/** Index of both pool kinds by `namespace/<name of their template>`, which the controllers declare as well. */
export const templateIndex = 'template'

/** The caches that the gate reads. Their stores declare {@link namespaceIndex}, {@link templateIndex}, `nameHashIndex`. */
export interface GateStores extends HashedStores {
  readonly claims: ReadStore<SandboxClaim>
  readonly pods: ReadStore<Pod>
  readonly networkPolicies: ReadStore<NetworkPolicy>
  readonly namespaces: ReadStore<KubeObject>
}

export interface FactSourceOptions {
  readonly client: Pick<KubeClient, 'get' | 'create'>
  readonly stores: GateStores
  readonly config: () => Config
  readonly clock: Clock
  /** The template that a pool's sandboxes are made from, given the one it refers to, if any: a set may hold its own. */
  readonly templateOf: (pool: Pool, referenced: SandboxTemplate | undefined) => SandboxTemplate | undefined
}

/** Gathers what the rules need to know beyond the object itself, from caches first. */
export function createFactSource({ client, stores, config, clock, templateOf }: FactSourceOptions): FactSource {
  const creations = new ClaimCreations()

  return {
    async gather(subject, deadline) {
      const find = cachedFind(client, deadline)
      const [near, far] = await Promise.all([around(subject, deadline), behind(subject, find)])
      const namespace = stores.namespaces.get(subject.namespace)
      return {
        facts: { ...near, ...far },
        namespaceLabels: namespace?.metadata.labels ?? {},
        mayBeOld: far.pool?.kind === 'found' || far.template?.kind === 'found' || namespace === undefined,
      }
    },
    async confirm(subject, { facts }, deadline) {
      const live = liveFind(client, deadline)
      const [far, namespace] = await Promise.all([
        behind(subject, live),
        live(stores.namespaces, namespaces, { name: subject.namespace }),
      ])
      const known = namespace.kind === 'found' ? namespace.value : stores.namespaces.get(subject.namespace)
      return { facts: { ...facts, ...far }, namespaceLabels: known?.metadata.labels ?? {}, mayBeOld: false }
    },
    noteClaimCreated(username) {
      if (config().claims.maxCreatesPerMinute !== undefined) creations.record(username, clock.monotonic())
    },
  }

  /** The pool and the template that the subject refers to: what can appear or change beside it within one `apply`. */
  async function behind(subject: Subject, find: Find): Promise<Pick<Facts, 'pool' | 'template'>> {
    const { kind, object, namespace, operation, subresource } = subject
    if (operation === 'DELETE' || subresource) return {}
    if (kind === 'SandboxWarmPool' || kind === 'SandboxSet') return await templateFacts(object as Pool, namespace, find)
    if (kind !== 'SandboxClaim') return {}
    const { warmPoolRef } = (object as SandboxClaim).spec
    const ref = { namespace, name: warmPoolRef.name }
    const pool: Known<Pool> =
      warmPoolRef.kind === 'SandboxSet'
        ? await find(stores.sets, sandboxSetKind, ref)
        : await find(stores.warmPools, sandboxWarmPoolKind, ref)
    return { pool, ...(pool.kind === 'found' && (await templateFacts(pool.value, namespace, find))) }
  }

  async function templateFacts(pool: Pool, namespace: string, find: Find): Promise<Pick<Facts, 'template'>> {
    const reference = 'sandboxTemplateRef' in pool.spec ? pool.spec.sandboxTemplateRef : pool.spec.templateRef
    const referenced =
      reference && (await find(stores.templates, sandboxTemplateKind, { namespace, name: reference.name }))
    if (referenced && referenced.kind !== 'found') return { template: referenced }
    // A set with neither template nor reference has none; that is for set/template-choice to say.
    if (!referenced && !('template' in pool.spec)) return {}
    const value = templateOf(pool, referenced?.value)
    return value ? { template: { kind: 'found', value } } : {}
  }

  /** Everything else, by what is asked. */
  async function around(subject: Subject, deadline: Deadline): Promise<Facts> {
    const { kind, operation, namespace, object, subresource } = subject
    const ref = { namespace, name: object.metadata.name ?? '' }
    if (subresource === 'scale') return {}
    if (subresource === 'ephemeralcontainers')
      return { pod: await cachedFind(client, deadline)(stores.pods, pods, ref) }
    if (operation === 'DELETE') {
      return kind === 'SandboxTemplate' ? { poolsOfTemplate: poolsOf(subject) } : await owningClaim(subject, deadline)
    }
    const source = podSourceOf(subject)
    return {
      ...(operation === 'CREATE' && { sameHash: sameHash(subject, stores) }),
      ...(operation === 'CREATE' && kind === 'SandboxClaim' && newClaimFacts(subject)),
      ...(source && { dryRun: await tryPod(source, namespace, { client, config: config(), deadline }) }),
      ...networkPolicyFacts(subject),
    }
  }

  function newClaimFacts({ namespace, username, object }: Subject): Facts {
    const { maxPerNamespace, maxCreatesPerMinute } = config().claims
    const { name = '' } = object.metadata
    return {
      sandboxOfName: inCache(stores.sandboxes, { namespace, name }),
      ...(maxPerNamespace !== undefined && { claimsInNamespace: liveClaims(namespace, name) }),
      ...(maxCreatesPerMinute !== undefined && {
        claimsByUserLastMinute: creations.lastMinute(username, clock.monotonic()),
      }),
    }
  }

  function liveClaims(namespace: string, except: string): number {
    const claims = stores.claims.indexed(namespaceIndex, namespace)
    return claims.filter((claim) => isLive(claim) && claim.metadata.name !== except).length
  }

  function networkPolicyFacts({ kind, object, namespace }: Subject): Pick<Facts, 'networkPolicy'> {
    const { name = '' } = object.metadata
    const named = (policy: string) => ({ networkPolicy: inCache(stores.networkPolicies, { namespace, name: policy }) })
    if (kind === 'SandboxTemplate') return named(`${name}-network-policy`)
    return kind === 'SandboxSet' && (object as SandboxSet).spec.template ? named(`${name}-set-network-policy`) : {}
  }

  function poolsOf({ namespace, object }: Subject): string[] {
    const value = `${namespace}/${object.metadata.name}`
    const pools = [...stores.warmPools.indexed(templateIndex, value), ...stores.sets.indexed(templateIndex, value)]
    return pools.map(({ metadata }) => metadata.name ?? '')
  }

  /** Only the collector's deletions are judged, so a user's costs no read. */
  async function owningClaim({ kind, object, actor, namespace }: Subject, deadline: Deadline): Promise<Facts> {
    const owner = kind === 'Sandbox' ? controllerOf(object) : undefined
    if (actor !== 'collector' || owner?.kind !== sandboxClaimKind.kind) return {}
    const ref = { namespace, name: owner.name }
    return { owningClaim: await liveFind(client, deadline)(stores.claims, sandboxClaimKind, ref) }
  }
}

/** Counts towards the quota: neither on its way out nor done with its work. */
function isLive({ metadata, status }: SandboxClaim): boolean {
  const isFinished = status?.conditions?.some((each) => each.type === 'Finished' && each.status === 'True') ?? false
  return metadata.deletionTimestamp === undefined && !isFinished
}
