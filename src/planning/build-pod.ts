import type { V1PodSpec, V1Volume } from '@kubernetes/client-node'
import type { Pod } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import { annotations, labels } from '../api/vocabulary.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { applySecureDefaults } from '../policy/secure-defaults.ts'
import { volumeClaimName } from './build-volume-claim.ts'
import { keyRecord, keysPatch, pick, recordedKeys, withoutReserved, type Keys } from './carried-metadata.ts'
import { nameOf, sandboxNameHash, sandboxOwner, templateRefHashOf, tenureOf } from './sandbox-identity.ts'

export interface PodMetadata {
  readonly labels: Keys
  readonly annotations: Keys
}

/**
 * The Pod of a Sandbox. Secure defaults were applied when the Sandbox was made, by admission or by the controller that
 * made it; they are applied once more for a stand-alone Sandbox that was created while admission was off.
 */
export function buildPod(sandbox: Sandbox, config: PolicyConfig): Pod {
  const { labels: podLabels, annotations: podAnnotations } = podMetadata(sandbox)
  const spec = applySecureDefaults(sandbox.spec.podTemplate.spec, { template: undefined, config })
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: nameOf(sandbox),
      namespace: sandbox.metadata.namespace ?? '',
      labels: podLabels,
      annotations: podAnnotations,
      ownerReferences: [sandboxOwner(sandbox)],
    },
    spec: mountVolumeClaims(spec, sandbox),
  }
}

/** Labels and annotations that the Pod is to carry: those of `podTemplate.metadata`, and ours, from facts alone. */
export function podMetadata(sandbox: Sandbox): PodMetadata {
  const given = sandbox.spec.podTemplate.metadata
  const carriedLabels = withoutReserved(given?.labels)
  const carriedAnnotations = withoutReserved(given?.annotations)
  const templateRefHash = templateRefHashOf(sandbox)
  return {
    labels: {
      ...carriedLabels,
      [labels.sandboxNameHash]: sandboxNameHash(sandbox),
      ...(templateRefHash !== undefined && { [labels.templateRefHash]: templateRefHash }),
      ...marksOfTenure(sandbox),
    },
    annotations: {
      ...carriedAnnotations,
      ...keyRecord(annotations.propagatedLabels, carriedLabels),
      ...keyRecord(annotations.propagatedAnnotations, carriedAnnotations),
    },
  }
}

/** The merge patch that brings the metadata of an existing Pod in line, or undefined when it is. */
export function podMetadataPatch(pod: Pod, sandbox: Sandbox): { metadata: object } | undefined {
  const wanted = podMetadata(sandbox)
  const present = { labels: pod.metadata.labels ?? {}, annotations: pod.metadata.annotations ?? {} }
  const obsoleteLabels = [
    ...recordedKeys(present.annotations[annotations.propagatedLabels]),
    labels.warmPool,
    labels.claimUid,
    labels.createdBy,
  ]
  const obsoleteAnnotations = [
    ...recordedKeys(present.annotations[annotations.propagatedAnnotations]),
    annotations.propagatedLabels,
    annotations.propagatedAnnotations,
  ]
  const labelsPatch = keysPatch(present.labels, wanted.labels, obsoleteLabels)
  const annotationsPatch = keysPatch(present.annotations, wanted.annotations, obsoleteAnnotations)
  const isInLine = Object.keys(labelsPatch).length === 0 && Object.keys(annotationsPatch).length === 0
  if (isInLine) return undefined
  return { metadata: { uid: pod.metadata.uid, labels: labelsPatch, annotations: annotationsPatch } }
}

/**
 * What says whose the Sandbox is. The template-ref hash is not among these: the NetworkPolicy selects it, and a Pod
 * that loses it is a Pod with an open network, so once there it is never removed.
 */
function marksOfTenure(sandbox: Sandbox): Keys {
  const own = sandbox.metadata.labels ?? {}
  const tenure = tenureOf(sandbox)
  switch (tenure) {
    case 'pool':
      return pick(own, [labels.warmPool])
    case 'claim':
      return pick(own, [labels.claimUid, labels.createdBy])
    case 'none':
      return {}
    default:
      return tenure satisfies never
  }
}

/** Each volume claim template becomes a Pod volume, in the place of one of its name. */
function mountVolumeClaims(spec: V1PodSpec, sandbox: Sandbox): V1PodSpec {
  const templates = sandbox.spec.volumeClaimTemplates ?? []
  if (templates.length === 0) return spec
  const claimed = new Map<string, V1Volume>(
    templates.map(({ metadata: { name } }) => [
      name,
      { name, persistentVolumeClaim: { claimName: volumeClaimName(name, sandbox) } },
    ]),
  )
  const others = (spec.volumes ?? []).filter((volume) => !claimed.has(volume.name))
  return { ...spec, volumes: [...others, ...claimed.values()] }
}
