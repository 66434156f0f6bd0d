import { type Sandbox, type SandboxClaim, sandboxClaimKind, sandboxKind } from '../../src/api/kinds.ts'
import type { Condition } from '../../src/api/schema.ts'
import type { KubeClient } from '../../src/kube/client.ts'
import type { KubeObject, ObjectRef, Resource } from '../../src/kube/object.ts'

/** A claim that the client has given up on; `reason` is that of its Ready condition. */
export class GivenUpError extends Error {
  readonly reason: string

  constructor({ reason, message }: Condition) {
    super(`${reason}: ${message}`)
    this.reason = reason
  }
}

/** Where an agent finds its sandbox. */
export interface Session {
  readonly claimName: string
  readonly sandboxName: string
  readonly podName: string
  readonly podIP: string
}

/** The client's own knowledge of the API, not ours: what the published clients compare with. */
const hopeless: ReadonlySet<string> = new Set([
  'TemplateNotFound',
  'WarmPoolNotFound',
  'InvalidMetadata',
  'EnvVarsInjectionRejected',
  'VolumeClaimTemplatesError',
  'ClaimExpired',
  'SandboxExpired',
])
const readyOf = ({ status }: SandboxClaim | Sandbox) => status?.conditions?.find(({ type }) => type === 'Ready')

/**
 * Behaves as the published clients of this API do: creates a claim, watches it, reads its sandbox, deletes it. Whoever
 * runs it needs to create, watch and delete claims and to watch sandboxes, nothing else.
 */
export class PublishedClient {
  readonly #client: KubeClient
  readonly #namespace: string

  constructor(client: KubeClient, namespace: string) {
    this.#client = client
    this.#namespace = namespace
  }

  /**
   * Resolves once the sandbox can be used.
   * @throws GivenUpError at once for the reasons that do not pass
   */
  async open(pool: string, spec: Omit<SandboxClaim['spec'], 'warmPoolRef'> = {}): Promise<Session> {
    const { metadata } = await this.#client.create(sandboxClaimKind, {
      metadata: {
        generateName: 'sandbox-claim-',
        namespace: this.#namespace,
        labels: { 'agents.x-k8s.io/created-by': 'python-client' },
      },
      spec: { warmPoolRef: { name: pool }, ...spec },
    })
    const claimName = metadata.name ?? ''
    const claim = await this.#watch(sandboxClaimKind, claimName, (seen) => {
      const ready = readyOf(seen)
      if (ready?.status === 'False' && hopeless.has(ready.reason)) throw new GivenUpError(ready)
      return ready?.status === 'True' && seen.status?.sandbox?.name !== undefined
    })
    const sandboxName = claim.status?.sandbox?.name ?? ''
    const usable = (seen: Sandbox) => readyOf(seen)?.status === 'True' && (seen.status?.podIPs?.length ?? 0) > 0
    const sandbox = await this.#watch(sandboxKind, sandboxName, usable)
    const podName = sandbox.metadata.annotations?.['agents.x-k8s.io/pod-name'] ?? sandboxName
    return { claimName, sandboxName, podName, podIP: sandbox.status?.podIPs?.[0] ?? '' }
  }

  /** Resolves once the claim is deleted; what it had goes after it. */
  async close({ claimName }: Pick<Session, 'claimName'>): Promise<void> {
    await this.#client.delete(sandboxClaimKind, this.#refOf(claimName))
  }

  /** From no version on, as they do: the present state comes first, as an event. */
  async #watch<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    isEnough: (object: T) => boolean,
  ): Promise<T> {
    const patience = AbortSignal.timeout(60_000)
    const over = new AbortController()
    const signal = AbortSignal.any([patience, over.signal])
    const { namespace } = this.#refOf(name)
    const options = { namespace: namespace ?? '', fieldSelector: `metadata.name=${name}`, resourceVersion: '', signal }
    try {
      for await (const event of await this.#client.watch(resource, options)) {
        if (event.type === 'ERROR') throw new Error(event.object.message)
        if (event.type === 'DELETED') throw new Error(`${resource.kind} ${name} was deleted`)
        if ((event.type === 'ADDED' || event.type === 'MODIFIED') && isEnough(event.object)) return event.object
      }
    } finally {
      over.abort()
    }
    throw new Error(`the watch on ${resource.kind} ${name} has ended`)
  }

  #refOf(name: string): ObjectRef {
    return { namespace: this.#namespace, name }
  }
}
