import type { V1Container, V1EnvVar, V1PodSpec } from '@kubernetes/client-node'
import type { EnvVar, VolumeClaimTemplate } from '../api/schema.ts'

/**
 * What a claim adds to the blueprint of its sandbox at a cold start. The rules `claim/env-*` and `claim/volume-*` have
 * judged the claim before; here every entry that was let in replaces by name or is appended.
 */

/** The PodSpec with the claim's variables; an entry whose containerName is absent or empty goes to the first main container. */
export function injectEnv(spec: V1PodSpec, env: readonly EnvVar[]): V1PodSpec {
  if (env.length === 0) return spec
  const firstMain = spec.containers[0]?.name
  const byContainer = Map.groupBy(env, (entry) => entry.containerName || firstMain)
  const withEnv = (container: V1Container): V1Container => {
    const added = byContainer.get(container.name)
    return added ? { ...container, env: mergeEnv(container.env ?? [], added) } : container
  }
  return {
    ...spec,
    containers: spec.containers.map(withEnv),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(withEnv) }),
  }
}

/** A replaced `valueFrom` is replaced whole: value and source of one variable never mix. */
function mergeEnv(existing: readonly V1EnvVar[], added: readonly EnvVar[]): V1EnvVar[] {
  const merged = new Map(existing.map((variable) => [variable.name, variable]))
  for (const { name, value } of added) merged.set(name, value === undefined ? { name } : { name, value })
  return [...merged.values()]
}

/** By name: the template's order is kept, replaced in place, new ones appended. */
export function mergeVolumeClaimTemplates(
  template: readonly VolumeClaimTemplate[],
  added: readonly VolumeClaimTemplate[],
): VolumeClaimTemplate[] {
  const merged = new Map(template.map((volume) => [volume.metadata.name, volume]))
  for (const volume of added) merged.set(volume.metadata.name, volume)
  return [...merged.values()]
}
