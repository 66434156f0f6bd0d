import { Type, type Static } from 'typebox'
import type { KubeObject } from '../../kube/object.ts'
import { ageColumn, type Kind } from '../kind.ts'
import { choice, conditions, dateTime, EmbeddedMetadata, env, objectName, volumeClaimTemplates } from '../schema.ts'

const SandboxClaimSpec = Type.Object({
  warmPoolRef: Type.Object({
    name: objectName('The pool to take a sandbox from, in this namespace.'),
    kind: Type.Optional(
      choice(['SandboxWarmPool', 'SandboxSet'], { description: 'What the name refers to. Default: SandboxWarmPool.' }),
    ),
  }),
  lifecycle: Type.Optional(
    Type.Object({
      shutdownTime: Type.Optional(dateTime({ description: 'When the claim expires.' })),
      ttlSecondsAfterFinished: Type.Optional(
        Type.Integer({
          format: 'int32',
          minimum: 0,
          description: 'The claim expires this many seconds after its sandbox finished.',
        }),
      ),
      shutdownPolicy: Type.Optional(
        choice(['Delete', 'DeleteForeground', 'Retain'], {
          default: 'Retain',
          description:
            'At expiry: Delete the claim; DeleteForeground keeps it visible until its sandbox has gone; Retain deletes only the sandbox.',
        }),
      ),
    }),
  ),
  additionalPodMetadata: Type.Optional({
    ...EmbeddedMetadata,
    description: 'Labels and annotations for the Pod of the sandbox.',
  }),
  env: Type.Optional(env),
  volumeClaimTemplates: Type.Optional(volumeClaimTemplates),
})

const SandboxClaimStatus = Type.Object({
  conditions: Type.Optional(conditions),
  sandbox: Type.Optional(
    Type.Object({
      name: Type.Optional(Type.String()),
      podIPs: Type.Optional(Type.Array(Type.String())),
    }),
  ),
})

export type SandboxClaimSpec = Static<typeof SandboxClaimSpec>
export type SandboxClaimStatus = Static<typeof SandboxClaimStatus>
export type SandboxClaim = KubeObject & { spec: SandboxClaimSpec; status?: SandboxClaimStatus }

export const sandboxClaimKind: Kind<SandboxClaim> = {
  group: 'extensions.agents.x-k8s.io',
  version: 'v1beta1',
  kind: 'SandboxClaim',
  plural: 'sandboxclaims',
  singular: 'sandboxclaim',
  shortNames: [],
  namespaced: true,
  description: 'A request for one sandbox, served from a warm pool when it can be.',
  spec: SandboxClaimSpec,
  status: SandboxClaimStatus,
  scale: false,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    { name: 'Sandbox', type: 'string', jsonPath: '.status.sandbox.name' },
    { name: 'Reason', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].reason" },
    ageColumn,
  ],
}
