import { Type, type Static } from 'typebox'
import type { KubeObject } from '../../kube/object.ts'
import { ageColumn, type Kind } from '../kind.ts'
import { blueprintFields, choice, NetworkRules } from '../schema.ts'

export const injectionPolicies = ['Allowed', 'Overrides', 'Disallowed'] as const
export type InjectionPolicy = (typeof injectionPolicies)[number]

const SandboxTemplateSpec = Type.Object({
  ...blueprintFields,
  networkPolicyManagement: Type.Optional(
    choice(['Managed', 'Unmanaged'], {
      default: 'Managed',
      description: 'Managed keeps one NetworkPolicy for all sandboxes of this template.',
    }),
  ),
  networkPolicy: Type.Optional(NetworkRules),
  envVarsInjectionPolicy: Type.Optional(
    choice(injectionPolicies, {
      default: 'Disallowed',
      description: 'Whether a claim may add environment variables (Allowed), or also replace them (Overrides).',
    }),
  ),
  volumeClaimTemplatesPolicy: Type.Optional(
    choice(injectionPolicies, {
      default: 'Disallowed',
      description: 'Whether a claim may add volume claim templates (Allowed), or also replace them (Overrides).',
    }),
  ),
})

export type SandboxTemplateSpec = Static<typeof SandboxTemplateSpec>
export type SandboxTemplate = KubeObject & { spec: SandboxTemplateSpec }

export const sandboxTemplateKind: Kind<SandboxTemplate> = {
  group: 'extensions.agents.x-k8s.io',
  version: 'v1beta1',
  kind: 'SandboxTemplate',
  plural: 'sandboxtemplates',
  singular: 'sandboxtemplate',
  shortNames: [],
  namespaced: true,
  description: 'A blueprint for sandboxes, with the policies that hold for every sandbox made from it.',
  spec: SandboxTemplateSpec,
  scale: false,
  columns: [ageColumn],
}
