import { Type, type Static } from 'typebox'
import type { KubeObject } from '../../kube/object.ts'
import { ageColumn, type Kind } from '../kind.ts'
import { blueprintFields, choice, conditions, dateTime } from '../schema.ts'

export const sandboxPhases = ['Pending', 'Running', 'Paused', 'Succeeded', 'Failed', 'Terminating'] as const

const SandboxSpec = Type.Object({
  ...blueprintFields,
  shutdownTime: Type.Optional(dateTime({ description: 'When the sandbox ends.' })),
  shutdownPolicy: Type.Optional(
    choice(['Delete', 'Retain'], {
      default: 'Retain',
      description: 'What happens to this object at shutdownTime. Its Pod and Service go either way.',
    }),
  ),
  operatingMode: Type.Optional(
    choice(['Running', 'Suspended'], {
      default: 'Running',
      description: 'Suspended deletes the Pod and keeps its volumes; Running again recreates it.',
    }),
  ),
})

const SandboxStatus = Type.Object({
  conditions: Type.Optional(conditions),
  podIPs: Type.Optional(Type.Array(Type.String())),
  nodeName: Type.Optional(Type.String()),
  service: Type.Optional(Type.String()),
  serviceFQDN: Type.Optional(Type.String()),
  selector: Type.Optional(Type.String()),
  phase: Type.Optional(choice(sandboxPhases)),
  updateRevision: Type.Optional(Type.String({ description: 'The revision of the SandboxSet it was made from.' })),
  podUID: Type.Optional(Type.String({ description: 'The Pod that the controller itself created.' })),
})

export type SandboxSpec = Static<typeof SandboxSpec>
export type SandboxStatus = Static<typeof SandboxStatus>
export type Sandbox = KubeObject & { spec: SandboxSpec; status?: SandboxStatus }

export const sandboxKind: Kind<Sandbox> = {
  group: 'agents.x-k8s.io',
  version: 'v1beta1',
  kind: 'Sandbox',
  plural: 'sandboxes',
  singular: 'sandbox',
  shortNames: [],
  namespaced: true,
  description: 'One isolated sandbox: a Pod with its volumes and Service.',
  spec: SandboxSpec,
  status: SandboxStatus,
  scale: false,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    { name: 'Reason', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].reason" },
    ageColumn,
  ],
}
