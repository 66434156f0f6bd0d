import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
} from '../src/api/kinds.ts'
import { pods } from '../src/api/core.ts'
import type { LabelSelector } from '../src/api/schema.ts'
import { labels } from '../src/api/vocabulary.ts'
import type { KubeObject, Resource } from '../src/kube/object.ts'
import type { Operation, SubjectKind } from '../src/policy/rule.ts'

export type Phase = 'mutating' | 'validating'
export type Subresource = 'scale' | 'ephemeralcontainers'

/** What one webhook is asked about: a resource of the API, or one of its subresources. */
export interface Target {
  readonly kind: SubjectKind
  readonly resource: Resource
  readonly subresource?: Subresource
}

/** One row: it becomes a route of the server and an entry of a webhook configuration. */
export interface Webhook {
  /** Unique, and a domain name of three parts or more, as the API server demands. */
  readonly name: string
  readonly phase: Phase
  readonly path: string
  readonly operations: readonly Operation[]
  readonly targets: readonly Target[]
  readonly objectSelector?: LabelSelector
  /** What the API server does when no answer comes. */
  readonly failurePolicy: 'Fail' | 'Ignore'
}

/**
 * How long the API server waits for an answer. Five times our own budget: the rest is for connecting and for a process
 * that is starting.
 */
export const timeoutSeconds = 5

const claim: Target = { kind: 'SandboxClaim', resource: sandboxClaimKind }
const template: Target = { kind: 'SandboxTemplate', resource: sandboxTemplateKind }
const warmPool: Target = { kind: 'SandboxWarmPool', resource: sandboxWarmPoolKind }
const set: Target = { kind: 'SandboxSet', resource: sandboxSetKind }
const sandbox: Target = { kind: 'Sandbox', resource: sandboxKind }
const pod: Target = { kind: 'Pod', resource: pods }

/**
 * Sandbox Pods, by the labels that mark them. A selector cannot say "or", hence one entry per key; each excludes the keys
 * of those before it, so that a Pod with all three costs one call and not three. The API server asks when the old or the
 * new object matches, so a removed label is seen too.
 */
const podLabels = [
  { name: 'pods', key: labels.sandboxNameHash },
  { name: 'pool-pods', key: labels.warmPool },
  { name: 'template-pods', key: labels.templateRefHash },
]
const podWebhooks: Webhook[] = podLabels.map(({ name, key }, position) => ({
  name: `${name}.validate.sandgate.dev`,
  phase: 'validating',
  path: '/validate/pods',
  operations: ['CREATE', 'UPDATE'],
  targets: [pod],
  objectSelector: {
    matchExpressions: [
      { key, operator: 'Exists' },
      ...podLabels.slice(0, position).map((earlier) => ({ key: earlier.key, operator: 'DoesNotExist' })),
    ],
  },
  failurePolicy: 'Fail',
}))

function mutating(name: string, target: Target, operations: readonly Operation[]): Webhook {
  return {
    name: `${name}.mutate.sandgate.dev`,
    phase: 'mutating',
    path: `/mutate/${name}`,
    operations,
    targets: [target],
    failurePolicy: 'Fail',
  }
}

function validating(name: string, target: Target): Webhook {
  return {
    name: `${name}.validate.sandgate.dev`,
    phase: 'validating',
    path: `/validate/${name}`,
    operations: ['CREATE', 'UPDATE'],
    targets: [target],
    failurePolicy: 'Fail',
  }
}

/** Every webhook that the gate serves, in the order in which they stand in the manifests. */
export const webhooks: readonly Webhook[] = [
  mutating('claims', claim, ['CREATE', 'UPDATE']),
  mutating('templates', template, ['CREATE', 'UPDATE']),
  mutating('sets', set, ['CREATE', 'UPDATE']),
  mutating('sandboxes', sandbox, ['CREATE']),
  validating('claims', claim),
  validating('templates', template),
  validating('pools', warmPool),
  validating('sets', set),
  validating('sandboxes', sandbox),
  {
    name: 'scale.validate.sandgate.dev',
    phase: 'validating',
    path: '/validate/scale',
    operations: ['UPDATE'],
    targets: [
      { ...warmPool, subresource: 'scale' },
      { ...set, subresource: 'scale' },
    ],
    failurePolicy: 'Fail',
  },
  ...podWebhooks,
  {
    // No selector: servers before 1.22 send an EphemeralContainers object, which has no labels to select by. The gate
    // looks the Pod up instead.
    name: 'debug.validate.sandgate.dev',
    phase: 'validating',
    path: '/validate/debug',
    operations: ['UPDATE'],
    targets: [{ ...pod, subresource: 'ephemeralcontainers' }],
    failurePolicy: 'Fail',
  },
  {
    // Deletions must go through while the gate is down: the namespace controller and the garbage collector would hang.
    name: 'template-deletion.validate.sandgate.dev',
    phase: 'validating',
    path: '/validate/templates',
    operations: ['DELETE'],
    targets: [template],
    failurePolicy: 'Ignore',
  },
  {
    // Only claimed Sandboxes can be collected by mistake, so emptying a pool costs no call per member.
    name: 'sandbox-deletion.validate.sandgate.dev',
    phase: 'validating',
    path: '/validate/sandboxes',
    operations: ['DELETE'],
    targets: [sandbox],
    objectSelector: { matchExpressions: [{ key: labels.claimUid, operator: 'Exists' }] },
    failurePolicy: 'Ignore',
  },
]

/** Where the API server finds the gate. */
export type ClientConfig =
  | { readonly service: { readonly name: string; readonly namespace: string; readonly port?: number } }
  /** `https://host:port`, for a gate outside the cluster. */
  | { readonly url: string }

export interface ConfigurationOptions {
  readonly clientConfig: ClientConfig
  /** Base64 of PEM. Left out of shipped manifests: the running gate fills it in, and applying them again must not empty it. */
  readonly caBundle?: string
  /** The gate's own namespace, which it never judges, so that it can always start. */
  readonly ownNamespace: string
  /** `metadata.name` of both objects; default `sandgate`. */
  readonly name?: string
}

/** The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration that register {@link webhooks}. */
export function webhookConfigurations(options: ConfigurationOptions): KubeObject[] {
  return [
    configuration('MutatingWebhookConfiguration', 'mutating', options),
    configuration('ValidatingWebhookConfiguration', 'validating', options),
  ]
}

function configuration(
  kind: string,
  phase: Phase,
  options: ConfigurationOptions,
): KubeObject & { webhooks: unknown[] } {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: { name: options.name ?? 'sandgate' },
    webhooks: webhooks.filter((webhook) => webhook.phase === phase).map((webhook) => entry(webhook, options)),
  }
}

function entry(webhook: Webhook, { clientConfig, caBundle, ownNamespace }: ConfigurationOptions) {
  return {
    name: webhook.name,
    admissionReviewVersions: ['v1'],
    clientConfig: {
      ...('url' in clientConfig
        ? { url: `${clientConfig.url.replace(/\/$/, '')}${webhook.path}` }
        : { service: { ...clientConfig.service, path: webhook.path } }),
      ...(caBundle !== undefined && { caBundle }),
    },
    rules: webhook.targets.map(({ resource, subresource }) => ({
      apiGroups: [resource.group],
      apiVersions: [resource.version],
      operations: webhook.operations,
      resources: [subresource ? `${resource.plural}/${subresource}` : resource.plural],
      scope: 'Namespaced',
    })),
    // Matches namespaces without the label as well, which is what servers before 1.21 have.
    namespaceSelector: {
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [ownNamespace] }],
    },
    ...(webhook.objectSelector && { objectSelector: webhook.objectSelector }),
    matchPolicy: 'Equivalent',
    failurePolicy: webhook.failurePolicy,
    sideEffects: 'NoneOnDryRun',
    timeoutSeconds,
    ...(webhook.phase === 'mutating' && { reinvocationPolicy: 'IfNeeded' }),
  }
}
