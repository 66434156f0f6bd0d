import type { V1NetworkPolicyPort, V1PersistentVolumeClaimSpec, V1PodSpec } from '@kubernetes/client-node'
import { Type, type Static } from 'typebox'

/**
 * The building blocks of the kinds' schemas. Each is a plain JSON Schema that also carries its TypeScript type, so
 * that the CRD, the validator and the type of a field are one declaration.
 */

type Options = { description?: string; default?: unknown }

/** One of a fixed set of strings. */
export function choice<const V extends string>(values: readonly V[], options: Options = {}) {
  return Type.Unsafe<V>({ type: 'string', enum: [...values], ...options })
}

export function stringMap(options: Options = {}) {
  return Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' }, ...options })
}

export function dateTime(options: Options = {}) {
  return Type.Unsafe<string>({ type: 'string', format: 'date-time', ...options })
}

/**
 * The name of another object. What could not be one is refused here: it would only ever be looked for in vain, and a path
 * in place of a name must not get as far as a request.
 */
export function objectName(description: string) {
  return Type.String({ maxLength: 253, pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$', description })
}

/** A count, or a percentage written as `"20%"`. */
export function countOrPercent(options: Options = {}) {
  return Type.Unsafe<number | string>({
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    'x-kubernetes-int-or-string': true,
    ...options,
  })
}

/** An object whose fields belong to another API: kept whole, checked at admission with a dry-run. */
function foreign<T>(description: string) {
  return Type.Unsafe<T>({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true, description })
}

const Atomic = { 'x-kubernetes-list-type': 'atomic' }

export const EmbeddedMetadata = Type.Object({
  labels: Type.Optional(stringMap()),
  annotations: Type.Optional(stringMap()),
})

export const PodTemplate = Type.Object(
  {
    metadata: Type.Optional(EmbeddedMetadata),
    spec: foreign<V1PodSpec>('The PodSpec of the sandbox. Checked at admission by a dry-run against the API server.'),
  },
  { description: 'The Pod that a sandbox runs in.' },
)
export type PodTemplate = Static<typeof PodTemplate>

export const VolumeClaimTemplate = Type.Object({
  metadata: Type.Object({
    name: Type.String(),
    labels: Type.Optional(stringMap()),
    annotations: Type.Optional(stringMap()),
  }),
  spec: foreign<V1PersistentVolumeClaimSpec>('The spec of the PersistentVolumeClaim.'),
})
export type VolumeClaimTemplate = Static<typeof VolumeClaimTemplate>

export const volumeClaimTemplates = Type.Array(VolumeClaimTemplate, {
  ...Atomic,
  description: 'Volumes of the sandbox. Each becomes a PersistentVolumeClaim named <template>-<sandbox>.',
})

/** The fields that say what a sandbox is made of; inlined into Sandbox.spec and SandboxTemplate.spec. */
export const blueprintFields = {
  podTemplate: PodTemplate,
  volumeClaimTemplates: Type.Optional(volumeClaimTemplates),
  service: Type.Optional(
    Type.Boolean({ description: 'Headless Service: true keeps one, false removes ours, unset leaves it as it is.' }),
  ),
}
export const SandboxBlueprint = Type.Object(blueprintFields)
export type SandboxBlueprint = Static<typeof SandboxBlueprint>

export const EnvVar = Type.Object({
  name: Type.String({ minLength: 1 }),
  value: Type.Optional(Type.String()),
  containerName: Type.Optional(
    Type.String({ description: 'An init or main container of the template. Default: the first main container.' }),
  ),
})
export type EnvVar = Static<typeof EnvVar>
export const env = Type.Array(EnvVar, {
  ...Atomic,
  description: "Environment variables. Any entry forces a cold start; the template's envVarsInjectionPolicy decides.",
})

export type NetworkPolicyPeer = {
  podSelector?: LabelSelector
  namespaceSelector?: LabelSelector
  ipBlock?: { cidr: string; except?: string[] }
}
export type LabelSelector = {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}
export type NetworkPolicyIngressRule = { ports?: V1NetworkPolicyPort[]; from?: NetworkPolicyPeer[] }
export type NetworkPolicyEgressRule = { ports?: V1NetworkPolicyPort[]; to?: NetworkPolicyPeer[] }

export const NetworkRules = Type.Object(
  {
    ingress: Type.Optional(Type.Array(foreign<NetworkPolicyIngressRule>('A NetworkPolicyIngressRule.'), Atomic)),
    egress: Type.Optional(Type.Array(foreign<NetworkPolicyEgressRule>('A NetworkPolicyEgressRule.'), Atomic)),
  },
  {
    description:
      'Custom rules. Unset: the secure default. Ingress is default-deny: sidecars that listen on ports of their own ' +
      '(mesh proxies, monitoring agents) need an ingress rule here, or their health checks fail.',
  },
)

export const Condition = Type.Object({
  type: Type.String(),
  status: choice(['True', 'False', 'Unknown']),
  reason: Type.String(),
  message: Type.String(),
  lastTransitionTime: dateTime(),
  observedGeneration: Type.Optional(Type.Integer({ format: 'int64', minimum: 0 })),
})
export type Condition = Static<typeof Condition>
export const conditions = Type.Array(Condition, {
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
})

export const replicaCount = (description: string, options: { default?: number } = {}) =>
  Type.Integer({ format: 'int32', minimum: 0, description, ...options })
export const generation = Type.Integer({ format: 'int64', minimum: 0 })
