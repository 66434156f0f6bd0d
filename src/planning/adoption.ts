import { apiVersionOf, type OwnerReference } from '../kube/object.ts'
import { sandboxClaimKind, type Sandbox, type SandboxClaim, type SandboxTemplate } from '../api/kinds.ts'
import { annotations, labels } from '../api/vocabulary.ts'
import { nameHash } from '../api/hash.ts'
import { templateRefOf } from './blueprint.ts'

interface Metadata {
  labels: Record<string, string>
  annotations: Record<string, string>
}

export function claimOwner(claim: SandboxClaim): OwnerReference {
  return {
    apiVersion: apiVersionOf(sandboxClaimKind),
    kind: sandboxClaimKind.kind,
    name: claim.metadata.name ?? '',
    uid: claim.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}

/**
 * The one merge patch that hands a pool's sandbox to a claim. It carries the candidate's UID and resourceVersion, so
 * that of two claims, or a claim and a pool's clean-up, only one can win.
 */
export function adoptionPatch(
  claim: SandboxClaim,
  sandbox: Sandbox,
  template: SandboxTemplate,
  proof: string,
): Record<string, unknown> {
  const isSetMember = sandbox.metadata.labels?.[labels.setClaimed] !== undefined
  return {
    metadata: {
      uid: sandbox.metadata.uid,
      resourceVersion: sandbox.metadata.resourceVersion,
      ownerReferences: [claimOwner(claim)],
      labels: {
        [labels.warmPool]: null,
        [labels.blueprintHash]: null,
        [labels.podTemplateHash]: null,
        [labels.setPool]: null,
        [labels.launchType]: 'warm',
        [labels.claimUid]: claim.metadata.uid,
        [labels.createdBy]: claim.metadata.labels?.[labels.createdBy] ?? null,
        ...(isSetMember && { [labels.setClaimed]: 'true' }),
      },
      annotations: {
        [annotations.podName]: sandbox.metadata.annotations?.[annotations.podName] ?? sandbox.metadata.name,
        [annotations.bound]: proof,
        ...claimAnnotations(claim),
      },
    },
    spec: { podTemplate: { metadata: podMetadataPatch(sandbox, podMetadata(claim, sandbox, template)) } },
  }
}

/** Annotations that travel from the claim to its Sandbox: who asked, and the trace it belongs to. */
export function claimAnnotations(claim: SandboxClaim): Record<string, string> {
  const carried = [annotations.requestedBy, annotations.traceContext]
  const given = claim.metadata.annotations ?? {}
  return Object.fromEntries(carried.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]])))
}

/**
 * The patch that brings the Pod metadata of a bound sandbox in line with its template and claim, or undefined when it
 * is. Without its template, what the sandbox has stays and only the claim's own metadata is added; so it is with another
 * template, which the claim's pool may have come to refer to since.
 */
export function metadataSyncPatch(
  claim: SandboxClaim,
  sandbox: Sandbox,
  template: SandboxTemplate | undefined,
): Record<string, unknown> | undefined {
  const isOwn =
    template !== undefined && sandbox.metadata.labels?.[labels.templateRefHash] === nameHash(templateRefOf(template))
  const patch = podMetadataPatch(sandbox, podMetadata(claim, sandbox, isOwn ? template : undefined))
  const isInLine = Object.keys(patch.labels).length === 0 && Object.keys(patch.annotations).length === 0
  if (isInLine) return undefined
  const { uid, resourceVersion } = sandbox.metadata
  return { metadata: { uid, resourceVersion }, spec: { podTemplate: { metadata: patch } } }
}

/** Metadata of a claimed sandbox's Pod: the template's, what the claim adds, and the marks that select it. */
function podMetadata(claim: SandboxClaim, sandbox: Sandbox, template: SandboxTemplate | undefined): Metadata {
  const base = template ? template.spec.podTemplate.metadata : sandbox.spec.podTemplate.metadata
  const added = claim.spec.additionalPodMetadata
  const templateRefHash =
    sandbox.metadata.labels?.[labels.templateRefHash] ?? (template && nameHash(templateRefOf(template)))
  const createdBy = claim.metadata.labels?.[labels.createdBy]
  return {
    labels: {
      ...base?.labels,
      ...added?.labels,
      [labels.claimUid]: claim.metadata.uid ?? '',
      ...(templateRefHash !== undefined && { [labels.templateRefHash]: templateRefHash }),
      ...(createdBy !== undefined && { [labels.createdBy]: createdBy }),
    },
    annotations: { ...base?.annotations, ...added?.annotations },
  }
}

/** Merge-patch form of the change from the sandbox's present Pod metadata to `wanted`: null removes a key. */
function podMetadataPatch(sandbox: Sandbox, wanted: Metadata) {
  const present = sandbox.spec.podTemplate.metadata
  return {
    labels: mapPatch(present?.labels ?? {}, wanted.labels),
    annotations: mapPatch(present?.annotations ?? {}, wanted.annotations),
  }
}

function mapPatch(present: Record<string, string>, wanted: Record<string, string>): Record<string, string | null> {
  const patch: Record<string, string | null> = {}
  for (const key of Object.keys(present)) if (!Object.hasOwn(wanted, key)) patch[key] = null
  for (const [key, value] of Object.entries(wanted)) if (present[key] !== value) patch[key] = value
  return patch
}
