import type { V1Container, V1EphemeralContainer, V1PodSpec } from '@kubernetes/client-node'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate } from '../api/kinds.ts'
import type { VolumeClaimTemplate } from '../api/schema.ts'

type StringMap = Readonly<Record<string, string>>
type WithBlueprint = Sandbox | SandboxClaim | SandboxSet | SandboxTemplate

/** What an object says its sandboxes are made of, wherever it says so. */
export interface BlueprintView {
  /** Path of the Pod template: `spec.podTemplate`, or `spec.template` in a set. */
  readonly path: string
  readonly labels: StringMap
  readonly annotations: StringMap
  /** Absent in a claim, and in a set that refers to a template. */
  readonly podSpec?: V1PodSpec
  readonly volumeClaimTemplates: readonly VolumeClaimTemplate[]
}

/** The blueprint of an object, so that a rule about Pods and volumes is written once for all kinds. */
export function blueprintOf(object: WithBlueprint): BlueprintView {
  // An object that was stored under another schema may have no spec, and its finalizers must come off all the same.
  const spec = object.spec ?? {}
  const [path, template] =
    'podTemplate' in spec
      ? (['spec.podTemplate', spec.podTemplate] as const)
      : (['spec.template', 'template' in spec ? spec.template : undefined] as const)
  return {
    path,
    labels: template?.metadata?.labels ?? {},
    annotations: template?.metadata?.annotations ?? {},
    ...(template?.spec && { podSpec: template.spec }),
    volumeClaimTemplates: listOf(spec.volumeClaimTemplates),
  }
}

/** A container of any sort, with its path in the PodSpec. */
export interface PlacedContainer {
  readonly at: string
  readonly container: V1Container | V1EphemeralContainer
}

/** Every container of a PodSpec: init, main, ephemeral. */
export function containersOf(spec: V1PodSpec): PlacedContainer[] {
  return [...initAndMainOf(spec), ...ephemeralOf(spec)]
}

/** The containers that a claim's variables may go to. */
export function initAndMainOf(spec: V1PodSpec): { at: string; container: V1Container }[] {
  return [
    ...listOf(spec.initContainers).map((container, i) => ({ at: `initContainers[${i}]`, container })),
    ...listOf(spec.containers).map((container, i) => ({ at: `containers[${i}]`, container })),
  ]
}

export function ephemeralOf(spec: V1PodSpec): { at: string; container: V1EphemeralContainer }[] {
  return listOf(spec.ephemeralContainers).map((container, i) => ({ at: `ephemeralContainers[${i}]`, container }))
}

/**
 * The members of a list that the schema leaves open, for reading: a PodSpec is any JSON. A null member becomes an
 * empty one, so that positions stay right; what is no list has no members, and the API server's dry-run refuses it.
 */
export function listOf<T extends object>(value: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(value) ? value.map((member: T) => member ?? ({} as T)) : []
}
