import { Type, type Static } from 'typebox'
import type { KubeObject } from '../../kube/object.ts'
import { ageColumn, type Kind } from '../kind.ts'
import {
  choice,
  conditions,
  countOrPercent,
  generation,
  objectName,
  PodTemplate,
  replicaCount,
  volumeClaimTemplates,
} from '../schema.ts'

const SandboxSetSpec = Type.Object({
  replicas: replicaCount('How many unclaimed sandboxes to keep.'),
  template: Type.Optional(PodTemplate),
  templateRef: Type.Optional(Type.Object({ name: objectName('A SandboxTemplate in this namespace.') })),
  volumeClaimTemplates: Type.Optional(volumeClaimTemplates),
  persistentContents: Type.Optional(
    Type.Array(choice(['ip', 'memory', 'filesystem']), {
      'x-kubernetes-list-type': 'atomic',
      description: 'What should survive suspension.',
    }),
  ),
  scaleStrategy: Type.Optional(
    Type.Object({
      maxUnavailable: Type.Optional(
        countOrPercent({ description: 'How many sandboxes may be creating at once. Unset: no limit.' }),
      ),
    }),
  ),
  updateStrategy: Type.Optional(
    Type.Object({
      maxUnavailable: Type.Optional(
        countOrPercent({
          description: 'How many sandboxes may be unavailable during a rolling update. Default 20%; 0 pauses it.',
        }),
      ),
    }),
  ),
})

const SandboxSetStatus = Type.Object({
  observedGeneration: Type.Optional(generation),
  replicas: Type.Optional(replicaCount('Unclaimed sandboxes: creating, available and paused.')),
  availableReplicas: Type.Optional(replicaCount('Sandboxes ready to be claimed.')),
  updatedReplicas: Type.Optional(replicaCount('Sandboxes of the current revision.')),
  updatedAvailableReplicas: Type.Optional(replicaCount('Sandboxes of the current revision, ready to be claimed.')),
  updateRevision: Type.Optional(Type.String({ description: 'Hash of the current template.' })),
  selector: Type.Optional(Type.String({ description: 'Label selector of the stock, for the scale subresource.' })),
  conditions: Type.Optional(conditions),
})

export type SandboxSetSpec = Static<typeof SandboxSetSpec>
export type SandboxSetStatus = Static<typeof SandboxSetStatus>
export type SandboxSet = KubeObject & { spec: SandboxSetSpec; status?: SandboxSetStatus }

export const sandboxSetKind: Kind<SandboxSet> = {
  group: 'agents.kruise.io',
  version: 'v1alpha1',
  kind: 'SandboxSet',
  plural: 'sandboxsets',
  singular: 'sandboxset',
  shortNames: ['sbs'],
  namespaced: true,
  description: 'A stock of ready sandboxes with a template of its own, scaled and updated in steps.',
  spec: SandboxSetSpec,
  status: SandboxSetStatus,
  scale: true,
  columns: [
    { name: 'Replicas', type: 'integer', jsonPath: '.status.replicas' },
    { name: 'Available', type: 'integer', jsonPath: '.status.availableReplicas' },
    { name: 'UpdatedReplicas', type: 'integer', jsonPath: '.status.updatedReplicas', priority: 1 },
    { name: 'UpdatedAvailableReplicas', type: 'integer', jsonPath: '.status.updatedAvailableReplicas', priority: 1 },
    { name: 'UpdateRevision', type: 'string', jsonPath: '.status.updateRevision' },
    ageColumn,
  ],
}
