import { persistentVolumeClaims, pods, services } from '../api/core.ts'
import { sandboxKind } from '../api/kinds.ts'
import { isKubeError } from '../kube/errors.ts'
import { refKey, type KubeObject, type Resource } from '../kube/object.ts'
import { volumeClaimName } from '../planning/build-volume-claim.ts'
import { isOurs, nameOf } from '../planning/sandbox-identity.ts'
import { isOutsideCaches } from '../planning/sandbox-ownership.ts'
import type { SandboxView } from '../planning/sandbox-view.ts'
import type { Informer } from '../runtime/informer.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'
import { slotOf, type SandboxMemory, type SandboxNotes } from './sandbox-memory.ts'

/** How long an answer is believed about what no cache will ever tell of. Less than a sandbox in its way takes to look again. */
const unheardOfMs = 1_000

export interface SandboxSources {
  readonly deps: ControllerDependencies
  readonly memory: SandboxMemory
}

/**
 * What is known about a Sandbox: the caches, corrected by our own latest writes. Reads live only what we once met and
 * the caches do not show, such as an object of its name without our label. Undefined when the Sandbox is gone.
 */
export async function gatherSandbox(key: string, { deps, memory }: SandboxSources): Promise<SandboxView | undefined> {
  const { informers, clock } = deps
  const cached = informers.sandboxes.store.get(key)
  if (!cached) return undefined
  const notes = memory.about(cached)
  const sandbox = notes.recall(slotOf(sandboxKind.kind, nameOf(cached)), cached, clock.now()) ?? cached

  const { namespace = '' } = sandbox.metadata
  const find = <T extends KubeObject>(resource: Resource<T>, informer: Informer<T>, name: string) =>
    newest(resource, informer, { namespace, name }, notes, deps)
  const claimNames = (sandbox.spec.volumeClaimTemplates ?? []).map(({ metadata }) =>
    volumeClaimName(metadata.name, sandbox),
  )
  const [pod, service, ...claims] = await Promise.all([
    find(pods, informers.pods, nameOf(sandbox)),
    find(services, informers.services, nameOf(sandbox)),
    ...claimNames.map((name) => find(persistentVolumeClaims, informers.volumeClaims, name)),
  ])
  const others = informers.pods.store
    .indexed(indexes.controllerUid, sandbox.metadata.uid ?? '')
    .filter((each) => nameOf(each) !== nameOf(sandbox))
    .map((each) => notes.recall(slotOf(pods.kind, nameOf(each)), each, clock.now()) ?? each)
  if (pod && isOurs(pod, sandbox)) notes.recognise(pod)
  return {
    sandbox,
    pods: pod ? [pod, ...others] : others,
    service,
    volumeClaims: new Map(claims.flatMap((claim) => (claim ? [[nameOf(claim), claim]] : []))),
    ownPodUid: notes.ownPodUid,
    refusal: notes.refusal?.generation === sandbox.metadata.generation ? notes.refusal : undefined,
    deferredSince: notes.deferredSince,
    claimsAreWaiting: deps.claimsWaiting() > 0,
    config: deps.config(),
  }
}

/** The object as the cache or our own answer has it, whichever is newer; read live when neither can be relied on. */
async function newest<T extends KubeObject>(
  resource: Resource<T>,
  { store }: Informer<T>,
  ref: { readonly namespace: string; readonly name: string },
  notes: SandboxNotes,
  { client, clock }: ControllerDependencies,
): Promise<T | undefined> {
  const slot = slotOf(resource.kind, ref.name)
  const known = notes.recall(slot, store.get(refKey(ref)), clock.now())
  if (!notes.isDoubtful(slot, clock.now(), known && isOutsideCaches(known) ? unheardOfMs : undefined)) return known
  const live = await client.get(resource, ref).catch((error: unknown) => {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  })
  if (live) notes.remember(slot, live, clock.now())
  else notes.forget(slot)
  return live
}
