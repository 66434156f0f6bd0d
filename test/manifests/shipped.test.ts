import t from 'tap'
import { install, readManifests } from '../../src/cli/manifests.ts'
import { originKeysSecret } from '../../src/controllers/origin-keys.ts'
import type { KubeObject } from '../../src/kube/object.ts'

type Json = { [key: string]: unknown }
const { base } = await readManifests()
const ofKind = (kind: string) => base.filter((object) => object.kind === kind) as (KubeObject & Json)[]

t.test('an object comes after the namespace and the definitions it needs', async (t) => {
  const kinds = base.map(({ kind }) => kind)
  const namespaceAt = kinds.indexOf('Namespace')
  t.ok(namespaceAt >= 0)
  for (const [position, object] of base.entries()) {
    if (object.metadata.namespace) t.ok(position > namespaceAt, `${object.kind} ${object.metadata.name}`)
  }
})

t.test('nothing is named twice', async (t) => {
  const names = base.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`)
  t.equal(new Set(names).size, names.length)
})

t.test('the webhooks leave out the namespace that the gate runs in, and reach its Service', async (t) => {
  const service = ofKind('Service').find(({ metadata }) => metadata.name === 'sandgate-webhook')
  t.match(service?.['spec'], { ports: [{ port: 443, targetPort: 'https' }] })
  for (const configuration of [
    ...ofKind('MutatingWebhookConfiguration'),
    ...ofKind('ValidatingWebhookConfiguration'),
  ]) {
    for (const webhook of configuration['webhooks'] as Json[]) {
      t.match(webhook, {
        clientConfig: { service: { name: 'sandgate-webhook', namespace: 'sandgate-system', port: 443 } },
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['sandgate-system'] }],
        },
      })
    }
  }
})

t.test('the Pods meet the restricted Pod Security Standard', async (t) => {
  const [deployment] = ofKind('Deployment') as unknown as { spec: { template: { spec: Json } } }[]
  const spec = deployment?.spec.template.spec ?? {}
  t.match(spec, { securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } } })
  t.notOk(spec['hostNetwork'] || spec['hostPID'] || spec['hostIPC'])
  for (const container of spec['containers'] as Json[]) {
    t.match(container, {
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        privileged: false,
        capabilities: { drop: ['ALL'] },
      },
      resources: { requests: { cpu: String, memory: String }, limits: { cpu: String, memory: String } },
      readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
      livenessProbe: { httpGet: { path: '/healthz', port: 'http' } },
    })
  }
})

t.test('no role that the product holds has a wildcard, and none reads Secrets outside its own namespace', async (t) => {
  for (const role of [...ofKind('ClusterRole'), ...ofKind('Role')]) {
    for (const rule of role['rules'] as { apiGroups: string[]; resources: string[]; verbs: string[] }[]) {
      const words = [...rule.apiGroups, ...rule.resources, ...rule.verbs]
      t.notOk(words.includes('*'), `${role.metadata.name}: ${words.join(' ')}`)
      if (role.kind === 'ClusterRole') t.notOk(rule.resources.includes('secrets'), `${role.metadata.name}`)
    }
  }
})

t.test(
  'Secrets, leases and registrations are limited to their names, except where the object has none yet',
  async (t) => {
    const limited = /^(secrets|leases|mutatingwebhookconfigurations|validatingwebhookconfigurations)$/
    for (const role of [...ofKind('ClusterRole'), ...ofKind('Role')]) {
      for (const rule of role['rules'] as { resources: string[]; resourceNames?: string[]; verbs: string[] }[]) {
        if (!rule.resources.some((resource) => limited.test(resource))) continue
        t.ok(rule.resourceNames || rule.verbs.join() === 'create', `${role.metadata.name}: ${rule.resources.join()}`)
      }
    }
  },
)

t.test('the names that RBAC allows are the names that the program uses', async (t) => {
  const role = ofKind('Role').find(({ metadata }) => metadata.name === 'sandgate')
  const rules = (role?.['rules'] ?? []) as { resources: string[]; resourceNames?: string[] }[]
  const named = rules.filter((rule) => rule.resourceNames)
  t.same(
    named.map(({ resources, resourceNames }) => [resources, resourceNames]),
    [
      [['secrets'], [install.authoritySecret, originKeysSecret]],
      [['leases'], [install.lease]],
    ],
  )
})
