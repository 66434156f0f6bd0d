import { Type, type Static } from 'typebox'
import type { KubeObject } from '../../kube/object.ts'
import { ageColumn, type Kind } from '../kind.ts'
import { choice, conditions, generation, objectName, replicaCount } from '../schema.ts'

const SandboxWarmPoolSpec = Type.Object({
  replicas: Type.Optional(replicaCount('How many unclaimed sandboxes to keep.', { default: 1 })),
  sandboxTemplateRef: Type.Object({
    name: objectName('A SandboxTemplate in this namespace.'),
  }),
  updateStrategy: Type.Optional(
    Type.Object({
      type: Type.Optional(
        choice(['Recreate', 'OnReplenish'], {
          default: 'OnReplenish',
          description:
            'What a changed blueprint does to stock: Recreate replaces it at once, OnReplenish lets it be claimed first.',
        }),
      ),
    }),
  ),
})

const SandboxWarmPoolStatus = Type.Object({
  replicas: Type.Optional(replicaCount('Unclaimed sandboxes.')),
  readyReplicas: Type.Optional(replicaCount('Unclaimed sandboxes that are ready.')),
  selector: Type.Optional(Type.String({ description: 'Label selector of the stock, for the scale subresource.' })),
  observedGeneration: Type.Optional(generation),
  conditions: Type.Optional(conditions),
})

export type SandboxWarmPoolSpec = Static<typeof SandboxWarmPoolSpec>
export type SandboxWarmPoolStatus = Static<typeof SandboxWarmPoolStatus>
export type SandboxWarmPool = KubeObject & { spec: SandboxWarmPoolSpec; status?: SandboxWarmPoolStatus }

export const sandboxWarmPoolKind: Kind<SandboxWarmPool> = {
  group: 'extensions.agents.x-k8s.io',
  version: 'v1beta1',
  kind: 'SandboxWarmPool',
  plural: 'sandboxwarmpools',
  singular: 'sandboxwarmpool',
  shortNames: ['swp'],
  namespaced: true,
  description: 'A stock of ready sandboxes, made from a SandboxTemplate before anyone asks.',
  spec: SandboxWarmPoolSpec,
  status: SandboxWarmPoolStatus,
  scale: true,
  columns: [
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas' },
    { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'Template', type: 'string', jsonPath: '.spec.sandboxTemplateRef.name', priority: 1 },
    {
      name: 'Progress',
      type: 'string',
      jsonPath: ".status.conditions[?(@.type=='Progressing')].reason",
      priority: 1,
    },
    ageColumn,
  ],
}
