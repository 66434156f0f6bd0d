import { randomUUID } from 'node:crypto'
import { waitUntil } from '../../devcluster/wait.ts'
import { type Pod, pods } from '../../src/api/core.ts'
import {
  type Sandbox,
  type SandboxClaim,
  sandboxClaimKind,
  sandboxKind,
  type SandboxTemplate,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
} from '../../src/api/kinds.ts'
import { apiVersionOf, controllerOf, type KubeObject, type Resource } from '../../src/kube/object.ts'
import type { Condition } from '../../src/api/schema.ts'
import { annotations, conditionTypes } from '../../src/api/vocabulary.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { isReady, stockOf } from './pool-watch.ts'
import { type Scene, startScene } from './scene.ts'

/** Where everything of the stage is, unless said otherwise. */
export const namespace = 'default'

export type TemplateSpec = SandboxTemplate['spec']
export type ClaimSpec = Omit<SandboxClaim['spec'], 'warmPoolRef'>

/** What a claim was given. */
export interface Given {
  readonly claim: SandboxClaim
  readonly sandbox: Sandbox
  readonly pod: Pod
}

/** A scene for claims, and the words to speak of them. */
export interface ClaimStage extends Scene {
  /** A template and a pool of one name; resolves once the pool is full. */
  setUp(name: string, replicas: number, spec?: Partial<TemplateSpec>): Promise<void>
  untilFull(pool: string, replicas: number): Promise<void>
  /** `kubectl create`. */
  claim(pool: string, name: string, spec?: ClaimSpec): Promise<void>
  /** `kubectl create` that must be refused; resolves with what kubectl printed. */
  claimRefused(pool: string, name: string, spec: ClaimSpec): Promise<string>
  /** `kubectl patch --type=merge`. */
  patch(resource: Resource, name: string, patch: object): Promise<void>
  find<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T | undefined>
  ready(claim: string): Promise<Condition | undefined>
  /** Resolves once the claim is Ready, with what it was given. */
  untilReady(claim: string): Promise<Given>
  /** Resolves once the claim is not Ready for this reason. */
  untilReason(claim: string, reason: string): Promise<Condition>
  untilGone(resource: Resource, name: string): Promise<void>
  /**
   * Resolves once the garbage collector knows the kinds. It looks for new ones each half minute, and what it could not
   * judge before it tries again with pauses that grow into minutes: so nothing is to be left to it earlier.
   */
  untilCollecting(): Promise<void>
}

const configMaps: Resource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true }

/** The shortest template there is. */
export const aPodTemplate: TemplateSpec['podTemplate'] = { spec: { containers: [{ name: 'main', image: 'box:1' }] } }

/** As kubectl takes it. */
export function manifestOf<T extends KubeObject>(
  resource: Resource<T>,
  object: Omit<T, 'apiVersion' | 'kind'>,
): string {
  return JSON.stringify({ apiVersion: apiVersionOf(resource), kind: resource.kind, ...object })
}

export function claimManifest(pool: string, name: string, spec: ClaimSpec = {}): string {
  return manifestOf(sandboxClaimKind, { metadata: { name, namespace }, spec: { warmPoolRef: { name: pool }, ...spec } })
}

export function readyOf({ status }: SandboxClaim | Sandbox): Condition | undefined {
  return findCondition(status?.conditions, conditionTypes.ready)
}

export async function startClaimStage(...options: Parameters<typeof startScene>): Promise<ClaimStage> {
  const scene = await startScene(...options)
  const { client, kubectl, kubectlRefused, until } = scene
  const find = async <T extends KubeObject>(resource: Resource<T>, name: string) => {
    const { items } = await client.list(resource, { namespace, fieldSelector: `metadata.name=${name}` })
    return items[0]
  }
  const given = async (name: string): Promise<Given | undefined> => {
    const claim = await find(sandboxClaimKind, name)
    if (!claim || readyOf(claim)?.status !== 'True') return undefined
    const sandbox = await find(sandboxKind, claim.status?.sandbox?.name ?? '')
    const pod = await find(pods, sandbox?.metadata.annotations?.[annotations.podName] ?? '')
    return sandbox && pod && controllerOf(sandbox)?.uid === claim.metadata.uid ? { claim, sandbox, pod } : undefined
  }
  const ready = async (name: string) => {
    const claim = await find(sandboxClaimKind, name)
    return claim && readyOf(claim)
  }

  /** Polls until there is something to resolve with. */
  const untilSome = async <T>(what: string, look: () => Promise<T | undefined>): Promise<T> => {
    let found: T | undefined
    await until(what, async () => (found = await look()) !== undefined)
    return found as T
  }
  const untilFull = (name: string, replicas: number) =>
    until(`pool ${name}`, async () => {
      const pool = await find(sandboxWarmPoolKind, name)
      const members = stockOf((await client.list(sandboxKind, { namespace })).items, pool?.metadata.uid)
      return members.length === replicas && members.every(isReady)
    })

  return {
    ...scene,
    find,
    ready,
    untilFull,
    async setUp(name, replicas, spec = {}) {
      const metadata = { name, namespace }
      await client.create(sandboxTemplateKind, { metadata, spec: { podTemplate: aPodTemplate, ...spec } })
      await client.create(sandboxWarmPoolKind, { metadata, spec: { replicas, sandboxTemplateRef: { name } } })
      await untilFull(name, replicas)
    },
    async claim(pool, name, spec) {
      await kubectl(['create', '-f', '-'], claimManifest(pool, name, spec))
    },
    claimRefused: (pool, name, spec) => kubectlRefused(['create', '-f', '-'], claimManifest(pool, name, spec)),
    async patch({ plural, group }, name, patch) {
      await kubectl(['patch', `${plural}.${group}`, name, '--type=merge', '-p', JSON.stringify(patch)])
    },
    untilReady: (name) => untilSome(`claim ${name}`, () => given(name)),
    untilReason: (name, reason) =>
      untilSome(`${reason} on claim ${name}`, async () => {
        const condition = await ready(name)
        return condition?.status === 'False' && condition.reason === reason ? condition : undefined
      }),
    async untilCollecting() {
      const abandoned = { 'test/abandoned': 'true' }
      let count = 0
      const isAnyCollected = async () => {
        const owner = {
          apiVersion: apiVersionOf(sandboxKind),
          kind: sandboxKind.kind,
          name: 'nobody',
          uid: randomUUID(),
        }
        const metadata = { name: `abandoned-${count}`, namespace, labels: abandoned, ownerReferences: [owner] }
        await client.create(configMaps, { metadata })
        count++
        return (await client.list(configMaps, { namespace, labelSelector: 'test/abandoned' })).items.length < count
      }
      await waitUntil('the garbage collector', isAnyCollected, { withinMs: 60_000, everyMs: 500 })
      await kubectl(['delete', 'configmaps', '-l=test/abandoned'])
    },
    untilGone: (resource, name) =>
      until(`the end of ${resource.kind} ${name}`, async () => (await find(resource, name)) === undefined),
  }
}
