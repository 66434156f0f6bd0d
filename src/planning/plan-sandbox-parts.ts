import type { Pod } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import { conditionTypes, labels } from '../api/vocabulary.ts'
import { buildPod, podMetadataPatch } from './build-pod.ts'
import { buildService, servicePatch } from './build-service.ts'
import { buildVolumeClaim, volumeClaimName } from './build-volume-claim.ts'
import { findCondition } from './conditions.ts'
import { podState } from './pod-state.ts'
import { isOurs, nameOf, tenureOf } from './sandbox-identity.ts'
import { adoptionOf, occupantMessage } from './sandbox-ownership.ts'
import type { Part, SandboxStep } from './sandbox-steps.ts'
import { chiefPod, isOverdue, living, ownPods, provenPodUid, type SandboxView } from './sandbox-view.ts'

/** While claims wait, how often to see whether it is our turn. */
const yieldRecheckMs = 100
/** A Pod that fails sooner than this after its creation is recreated only then, so that a crash loop stays slow. */
const shortestPodLifeMs = 10_000

/** Rung 3: the volume claims. `missing` is not empty while one of their names belongs to someone else. */
export function planVolumeClaims({ sandbox, volumeClaims }: SandboxView): Part {
  const steps: SandboxStep[] = []
  const missing: string[] = []
  for (const template of sandbox.spec.volumeClaimTemplates ?? []) {
    const present = volumeClaims.get(volumeClaimName(template.metadata.name, sandbox))
    if (!present) {
      steps.push({ kind: 'createVolumeClaim', object: buildVolumeClaim(template, sandbox) })
    } else if (!isOurs(present, sandbox)) {
      const adoption = adoptionOf(present, 'PersistentVolumeClaim', sandbox)
      if (adoption) steps.push(adoption)
      else missing.push(occupantMessage(present, 'PersistentVolumeClaim', sandbox))
    }
  }
  return { steps, missing }
}

/** Rung 4: the Service. Where `spec.service` is unset, one that is there stays as it is. */
export function planService({ sandbox, service }: SandboxView): Part {
  const isOwn = service !== undefined && isOurs(service, sandbox)
  const isGoing = service?.metadata.deletionTimestamp !== undefined
  if (sandbox.spec.service === false && isOwn && !isGoing) {
    return { steps: [{ kind: 'deleteService', object: service }], missing: [] }
  }
  if (sandbox.spec.service !== true) return nothing
  if (!service) return { steps: [{ kind: 'createService', object: buildService(sandbox) }], missing: [] }
  if (isOwn) {
    const patch = isGoing ? undefined : servicePatch(service, sandbox)
    return patch ? { steps: [{ kind: 'patchService', object: service, patch }], missing: [] } : nothing
  }
  const adoption = adoptionOf(service, 'Service', sandbox)
  return adoption
    ? { steps: [adoption], missing: [] }
    : { steps: [], missing: [occupantMessage(service, 'Service', sandbox)] }
}

/** Rung 5: the Pod. It is not created without its volumes. */
export function planPod(view: SandboxView, hasVolumes: boolean, now: number): Part {
  const { sandbox, config } = view
  const pod = chiefPod(view)
  if (living(ownPods(view)).length > 1) return nothing
  if (!pod) {
    const occupant = view.pods.find((each) => nameOf(each) === nameOf(sandbox))
    if (occupant) return planOccupied(occupant, sandbox)
    return hasVolumes ? { steps: [{ kind: 'createPod', object: buildPod(sandbox, config) }], missing: [] } : nothing
  }
  if (pod.metadata.deletionTimestamp !== undefined) return nothing
  if (isToBeReplaced(pod, view)) {
    return { steps: [deletePod(pod, 'nothing proves that it was made for this sandbox')], missing: [] }
  }
  // A pool replaces its members whole; a Pod recreated under one would only delay that.
  if (podState(pod).kind === 'failed' && config.sandboxes.recreateFailedPods && tenureOf(sandbox) !== 'pool') {
    const ageMs = now - Date.parse(pod.metadata.creationTimestamp ?? '')
    if (ageMs < shortestPodLifeMs) return { ...nothing, recheckMs: shortestPodLifeMs - ageMs }
    return { steps: [deletePod(pod, 'it has failed and is to be recreated')], missing: [] }
  }
  const patch = podMetadataPatch(pod, sandbox)
  if (!patch) return nothing
  // Labels of a Pod that is in use already are in nobody's way; a claim's binding is.
  if (view.claimsAreWaiting && !isOverdue(view, now)) return { ...nothing, defers: true, recheckMs: yieldRecheckMs }
  return { steps: [{ kind: 'patchPod', object: pod, patch }], missing: [] }
}

function planOccupied(occupant: Pod, sandbox: Sandbox): Part {
  const adoption = adoptionOf(occupant, 'Pod', sandbox)
  return adoption
    ? { steps: [adoption], missing: [] }
    : { steps: [], missing: [occupantMessage(occupant, 'Pod', sandbox)] }
}

/**
 * A Pod's own owner reference proves nothing: anyone who may create Pods can write it. The proof is the server's reply
 * to our own POST, which a crash between the POST and the status write loses. What then?
 * - Stock of a pool is replaced: nobody has used it, and handing out a planted Pod would be the worst outcome.
 * - So is the Pod of a claimed Sandbox that was never shown to its user, for the same two reasons.
 * - Any other stays, because somebody may be working in it: a stand-alone Sandbox, whose Pod no claim is given, or one
 *   taken over from another implementation of this API, which records no UIDs. Its `podUID` is left unset.
 */
function isToBeReplaced(pod: Pod, view: SandboxView): boolean {
  const { sandbox } = view
  if (provenPodUid(pod, view) !== undefined) return false
  const isStock = tenureOf(sandbox) === 'pool' || sandbox.metadata.labels?.[labels.warmPool] !== undefined
  if (isStock || tenureOf(sandbox) === 'none') return isStock
  const { conditions, podIPs = [] } = sandbox.status ?? {}
  return findCondition(conditions, conditionTypes.ready)?.status !== 'True' && podIPs.length === 0
}

export function deletePod(object: Pod, because: string): SandboxStep {
  return { kind: 'deletePod', object, because }
}

const nothing: Part = { steps: [], missing: [] }
