import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { installYaml, readManifests, renderInstall } from '../../src/cli/manifests.ts'
import type { KubeObject } from '../../src/kube/object.ts'

type Json = { [key: string]: unknown }
const shipped = await readManifests()

function find(objects: readonly KubeObject[], kind: string, name = 'sandgate'): KubeObject & Json {
  const object = objects.find((candidate) => candidate.kind === kind && candidate.metadata.name === name)
  if (!object) throw new Error(`no ${kind} ${name}`)
  return object as KubeObject & Json
}

t.test('without options the install is what ships', async (t) => {
  t.same(renderInstall(shipped), shipped.base)
})

t.test('image and replica count go into the Deployment', async (t) => {
  const deployment = find(renderInstall(shipped, { image: 'registry.example/sandgate:2', replicas: 5 }), 'Deployment')
  t.match(deployment['spec'], {
    replicas: 5,
    template: { spec: { containers: [{ image: 'registry.example/sandgate:2' }] } },
  })
})

t.test('another namespace replaces the default one wherever it stands', async (t) => {
  const objects = renderInstall(shipped, { namespace: 'elsewhere', certificates: { kind: 'cert-manager' } })
  t.notMatch(JSON.stringify(objects), 'sandgate-system')
  t.match(find(objects, 'Namespace', 'elsewhere').metadata.labels, { 'kubernetes.io/metadata.name': 'elsewhere' })
  t.match(find(objects, 'Certificate', 'sandgate-webhook')['spec'], {
    dnsNames: [
      'sandgate-webhook.elsewhere.svc',
      'sandgate-webhook.elsewhere.svc.cluster.local',
      'sandgate-webhook.elsewhere',
    ],
  })
})

t.test('in another namespace the configuration trusts the controllers by their user name there', async (t) => {
  const { data } = find(renderInstall(shipped, { namespace: 'elsewhere' }), 'ConfigMap', 'sandgate-config')
  t.match((data as Record<string, string>)['config.yaml'], '- system:serviceaccount:elsewhere:sandgate\n')
})

t.test('a TLS Secret is mounted and served from, and the right to write a caBundle goes', async (t) => {
  const objects = renderInstall(shipped, { certificates: { kind: 'secret', name: 'our-tls' } })
  const { containers, volumes } = (find(objects, 'Deployment')['spec'] as { template: { spec: Json } }).template.spec
  t.match(containers, [
    { args: /--certificates=\/etc\/sandgate-tls/, volumeMounts: [{ mountPath: '/etc/sandgate-tls' }] },
  ])
  t.match(volumes, [{ secret: { secretName: 'our-tls' } }])
  t.same(
    (find(objects, 'ClusterRole', 'sandgate-registration')['rules'] as Json[]).map(({ verbs }) => verbs),
    [['get', 'list', 'watch']],
  )
  t.notMatch(JSON.stringify(objects), 'cert-manager.io')
})

t.test('a gate outside the cluster is registered by URL, path by path, and has no Deployment', async (t) => {
  const objects = renderInstall(shipped, { url: 'https://127.0.0.1:9443/' })
  t.notOk(objects.some(({ kind }) => kind === 'Deployment' || kind === 'Service'))
  const [first] = find(objects, 'MutatingWebhookConfiguration')['webhooks'] as { clientConfig: Json }[]
  t.same(first?.clientConfig, { url: 'https://127.0.0.1:9443/mutate/claims' })
  t.ok(find(objects, 'ServiceAccount'))
})

t.test('rendering leaves what ships as it was', async (t) => {
  const before = structuredClone(shipped)
  renderInstall(shipped, {
    namespace: 'elsewhere',
    replicas: 9,
    url: 'https://x',
    certificates: { kind: 'cert-manager' },
  })
  t.same(shipped, before)
})

t.test('the YAML reads back as the same objects, also by YAML 1.1 as kubectl does', async (t) => {
  const objects = renderInstall(shipped)
  for (const version of ['1.1', '1.2'] as const) {
    t.same(
      parseAllDocuments(installYaml(objects), { version }).map((document) => document.toJS() as unknown),
      objects,
    )
  }
})
