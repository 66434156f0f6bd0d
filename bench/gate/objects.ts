import type { KubeObject } from '../../src/kube/object.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxClaim,
  type SandboxTemplate,
  type SandboxWarmPool,
} from '../../src/api/kinds.ts'
import { poolHash } from '../../src/api/hash.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { apiVersionOf, type Resource } from '../../src/kube/object.ts'

const namespace = 'agents'
/** As many of each as a burst of the other scenarios leaves in the caches. */
const crowd = 300
/** What a claim with a dozen variables comes to when `kubectl apply` made it, envelope and managedFields included. */
const reviewBytes = 4096
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** What the caches of the gate hold while it is measured, by plural. */
export function cachedObjects(): ReadonlyMap<string, readonly KubeObject[]> {
  const each = <T>(make: (index: number) => T) => Array.from({ length: crowd }, (_, index) => make(index))
  return new Map<string, readonly KubeObject[]>([
    ['namespaces', [{ metadata: meta('', namespace) }]],
    ['sandboxtemplates', [template]],
    ['sandboxwarmpools', [pool]],
    ['sandboxes', each((index) => member(`python-${index}`))],
    ['sandboxclaims', each((index) => claim(`claim-${index}`, 0))],
  ])
}

/** The body of a review about a claim, of 4 KB and a little more; every rule lets it pass. */
export function claimReview(): Buffer {
  let variables = 0
  while (reviewOf(variables).length < reviewBytes) variables += 1
  return reviewOf(variables)
}

const template: SandboxTemplate = {
  ...typed(sandboxTemplateKind),
  metadata: meta(namespace, 'python'),
  spec: {
    podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3.13-slim' }] } },
    envVarsInjectionPolicy: 'Allowed',
  },
}

const pool: SandboxWarmPool = {
  ...typed(sandboxWarmPoolKind),
  metadata: meta(namespace, 'python'),
  spec: { replicas: crowd, sandboxTemplateRef: { name: 'python' } },
}

function member(name: string): Sandbox {
  const marks = { [labels.warmPool]: poolHash('SandboxWarmPool', 'python') }
  return {
    ...typed(sandboxKind),
    metadata: { ...meta(namespace, name), labels: marks },
    spec: { podTemplate: template.spec.podTemplate },
  }
}

function claim(name: string, variables: number): SandboxClaim {
  const env = Array.from({ length: variables }, (_, index) => ({
    name: `SETTING_${String(index).padStart(3, '0')}`,
    value: 'a value of the usual length, some forty letters',
  }))
  return {
    ...typed(sandboxClaimKind),
    metadata: meta(namespace, name),
    spec: {
      warmPoolRef: { name: 'python' },
      additionalPodMetadata: { labels: { 'sandbox.users.io/team': 'search' } },
      ...(variables > 0 && { env }),
    },
  }
}

function reviewOf(variables: number): Buffer {
  const { group, version, kind, plural } = sandboxClaimKind
  const { metadata, ...rest } = claim('asked', variables)
  const applied = JSON.stringify({ ...rest, metadata: { annotations: {}, name: 'asked', namespace } })
  const object = {
    ...rest,
    metadata: {
      ...metadata,
      annotations: { [lastApplied]: `${applied}\n` },
      managedFields: managedFields(variables),
    },
  }
  const review = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
      kind: { group, version, kind },
      resource: { group, version, resource: plural },
      requestKind: { group, version, kind },
      requestResource: { group, version, resource: plural },
      name: 'asked',
      namespace,
      operation: 'CREATE',
      userInfo: { username: 'alice', groups: ['developers', 'system:authenticated'] },
      object,
      oldObject: null,
      dryRun: false,
      options: { apiVersion: 'meta.k8s.io/v1', kind: 'CreateOptions' },
    },
  }
  return Buffer.from(JSON.stringify(review))
}

/** As the API server writes them: about as much text as the fields themselves. */
function managedFields(variables: number): object[] {
  const spec = { '.': {}, 'f:warmPoolRef': { '.': {}, 'f:name': {} }, ...(variables > 0 && { 'f:env': {} }) }
  return [
    {
      manager: 'kubectl-client-side-apply',
      operation: 'Update',
      apiVersion: apiVersionOf(sandboxClaimKind),
      time: '2025-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:metadata': { 'f:annotations': { '.': {}, [`f:${lastApplied}`]: {} } }, 'f:spec': spec },
    },
  ]
}

function typed({ group, version, kind }: Resource) {
  return { apiVersion: `${group}/${version}`, kind }
}

function meta(inNamespace: string, name: string) {
  const own = { name, uid: `uid-of-${name}`, resourceVersion: '1', generation: 1 }
  return { ...own, creationTimestamp: '2025-01-01T00:00:00Z', ...(inNamespace && { namespace: inNamespace }) }
}
