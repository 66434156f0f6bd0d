import type { PersistentVolumeClaim } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import type { VolumeClaimTemplate } from '../api/schema.ts'
import { labels } from '../api/vocabulary.ts'
import { withoutReserved } from './carried-metadata.ts'
import { nameOf, sandboxNameHash, sandboxOwner } from './sandbox-identity.ts'

/** `<template>-<sandbox>`: the name under which a Sandbox finds its volume again after a suspension. */
export function volumeClaimName(template: string, sandbox: Sandbox): string {
  return `${template}-${nameOf(sandbox)}`
}

/** The PersistentVolumeClaim of one template; it lives as long as the Sandbox, whatever becomes of the Pod. */
export function buildVolumeClaim(template: VolumeClaimTemplate, sandbox: Sandbox): PersistentVolumeClaim {
  const annotations = withoutReserved(template.metadata.annotations)
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: volumeClaimName(template.metadata.name, sandbox),
      namespace: sandbox.metadata.namespace ?? '',
      labels: { ...withoutReserved(template.metadata.labels), [labels.sandboxNameHash]: sandboxNameHash(sandbox) },
      ...(Object.keys(annotations).length > 0 && { annotations }),
      ownerReferences: [sandboxOwner(sandbox)],
    },
    spec: template.spec,
  }
}
