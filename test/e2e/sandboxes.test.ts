import t from 'tap'
import { behaviourAnnotation } from '../../devcluster/behaviour.ts'
import { networkPolicies, persistentVolumeClaims, pods, services } from '../../src/api/core.ts'
import { sandboxKind } from '../../src/api/kinds.ts'
import { nameHash } from '../../src/api/hash.ts'
import { labels } from '../../src/api/vocabulary.ts'
import type { KubeObject, Resource } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { startScene } from './scene.ts'

const namespace = 'default'

const box = `
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: { name: box }
spec:
  service: true
  podTemplate:
    metadata: { labels: { team: blue } }
    spec:
      containers: [{ name: main, image: "python:3.13", ports: [{ containerPort: 8080 }] }]
  volumeClaimTemplates:
    - metadata: { name: data }
      spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
`
const template = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: { name: python }
spec:
  podTemplate:
    spec:
      containers: [{ name: main, image: "python:3.13" }]
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: { name: python }
spec: { replicas: 1, sandboxTemplateRef: { name: python } }
`
const sandbox = (name: string) => `
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: { name: ${name} }
spec:
  podTemplate:
    spec:
      containers: [{ name: main, image: "python:3.13" }]
`
const slowly = `${behaviourAnnotation}: stop-delay=3000`

// Most of this is a policy's grace time after the last use: 15 s.
t.test('sandboxes and templates on a real API server', { timeout: 120_000 }, async (t) => {
  const { client, kubectl, kubectlRefused, until } = await startScene(t)
  const find = async <T extends KubeObject>(resource: Resource<T>, name: string) =>
    (await client.list(resource, { namespace })).items.find(({ metadata }) => metadata.name === name)
  const readyOf = async (name: string) => findCondition((await find(sandboxKind, name))?.status?.conditions, 'Ready')
  const isReady = async (name: string) => (await readyOf(name))?.status === 'True'

  /** The Pod of the first sandbox in the stock of a pool. */
  const podOf = async (pool: string) => {
    const { items } = await client.list(sandboxKind, { namespace, labelSelector: labels.warmPool })
    const member = items.find(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === pool))
    return find(pods, member?.metadata.name ?? '')
  }

  await t.test('a sandbox gets its Pod, volume and Service, and says what it knows of them', async (t) => {
    await kubectl(['apply', '-f', '-'], box)
    await until('the sandbox', () => isReady('box'))
    const pod = await find(pods, 'box')
    t.match((await find(sandboxKind, 'box'))?.status, {
      phase: 'Running',
      podUID: pod?.metadata.uid,
      nodeName: pod?.spec?.nodeName,
      service: 'box',
      serviceFQDN: 'box.default.svc.cluster.local',
    })
    t.match(pod?.metadata.labels, { team: 'blue' })
    t.match(pod?.spec?.volumes, [{ name: 'data', persistentVolumeClaim: { claimName: 'data-box' } }])
    t.ok(await find(persistentVolumeClaims, 'data-box'))
  })

  await t.test('a Service that somebody edited is put right', async (t) => {
    const patch = '{"spec":{"selector":{"app":"other"},"ports":[{"name":"x","port":1}]}}'
    await kubectl(['patch', 'service', 'box', '--type=merge', '-p', patch])
    await until('the repair', async () => (await find(services, 'box'))?.spec?.ports?.[0]?.port === 8080)
    t.notMatch((await find(services, 'box'))?.spec?.selector, { app: 'other' })
  })

  await t.test('it survives suspension with its volume', async (t) => {
    const volume = (await find(persistentVolumeClaims, 'data-box'))?.metadata.uid
    const mode = (operatingMode: string) =>
      kubectl(['patch', 'sandbox', 'box', '--type=merge', '-p', JSON.stringify({ spec: { operatingMode } })])
    await mode('Suspended')
    await until('the suspension', async () => {
      const status = (await find(sandboxKind, 'box'))?.status
      return findCondition(status?.conditions, 'Suspended')?.status === 'True'
    })
    t.equal(await find(pods, 'box'), undefined)
    await mode('Running')
    await until('the resumption', () => isReady('box'))
    t.equal((await find(persistentVolumeClaims, 'data-box'))?.metadata.uid, volume)
  })

  await t.test('an exhausted quota is named, and the sandbox comes up once it is freed', async (t) => {
    await kubectl(['create', 'quota', 'small', '--hard=pods=1'])
    await kubectl(['apply', '-f', '-'], box.replace('name: box', 'name: second'))
    await until('the refusal', async () => (await readyOf('second'))?.reason === 'QuotaExceeded')
    t.match((await readyOf('second'))?.message, /exceeded quota: small/)
    await kubectl(['delete', 'quota', 'small'])
    await until('the second sandbox', () => isReady('second'))
  })

  await t.test('at its shutdownTime it says so before it goes', async () => {
    const shutdownTime = new Date(Date.now() + 3_000).toISOString()
    const spec = JSON.stringify({ spec: { shutdownTime, shutdownPolicy: 'Retain' } })
    await kubectl(['patch', 'sandbox', 'second', '--type=merge', '-p', spec])
    await until('the mark', async () => (await readyOf('second'))?.reason === 'SandboxExpired')
    await until('the end of its Pod', async () => (await find(pods, 'second')) === undefined)
  })

  await t.test('case 15: made anew while its old Pod ends, it waits and then makes its own', async (t) => {
    const slow = sandbox('again').replace('podTemplate:', `podTemplate:\n    metadata: { annotations: { ${slowly} } }`)
    await kubectl(['apply', '-f', '-'], slow)
    await until('the sandbox', () => isReady('again'))
    const [old, oldPod] = [await find(sandboxKind, 'again'), await find(pods, 'again')]
    // Its Pod is on its way out, as the garbage collector would have it.
    await client.delete(sandboxKind, { namespace, name: 'again' })
    await client.delete(pods, { namespace, name: 'again' })
    await kubectl(['apply', '-f', '-'], slow)
    await until('word of the old Pod', async () => (await readyOf('again'))?.status === 'False')
    t.equal((await find(pods, 'again'))?.metadata.uid, oldPod?.metadata.uid)
    await until('the new sandbox', () => isReady('again'))
    const [again, pod] = [await find(sandboxKind, 'again'), await find(pods, 'again')]
    t.not(again?.metadata.uid, old?.metadata.uid)
    t.not(pod?.metadata.uid, oldPod?.metadata.uid)
    t.match(pod?.metadata.ownerReferences, [{ uid: again?.metadata.uid, controller: true }])
    t.equal(again?.status?.podUID, pod?.metadata.uid)
  })

  await t.test('case 16: a name that no Service can have is refused with service: true', async (t) => {
    const refusal = async (name: string) =>
      kubectlRefused(['apply', '-f', '-'], box.replace('name: box', `name: ${name}`))
    t.match(await refusal('b'.repeat(64)), /63.*\(sandbox\/name\)/)
    t.match(await refusal('1box'), /\(sandbox\/name\)/)
  })

  await t.test('the NetworkPolicy of a template is kept as it should be', async (t) => {
    await kubectl(['apply', '-f', '-'], template)
    await until('the policy', async () => (await find(networkPolicies, 'python-network-policy')) !== undefined)
    const policy = await find(networkPolicies, 'python-network-policy')
    const patch = '{"spec":{"podSelector":{"matchLabels":{"nobody":"here"}},"ingress":[{}]}}'
    await kubectl(['patch', 'networkpolicy', 'python-network-policy', '--type=merge', '-p', patch])
    await until('the repair', async () => {
      const spec = (await find(networkPolicies, 'python-network-policy'))?.spec
      return spec?.podSelector.matchLabels?.['nobody'] === undefined
    })
    t.same((await find(networkPolicies, 'python-network-policy'))?.spec, policy?.spec)
    await until('the pool', async () => (await podOf('python')) !== undefined)
  })

  await t.test('it is the secure default, field by field', async (t) => {
    // In from the router alone. Out to the internet, but to no private range, neighbour or metadata server.
    const router = {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'agent-sandbox-system' } },
      podSelector: { matchLabels: { app: 'sandbox-router' } },
    }
    const except = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16']
    const stored = await find(networkPolicies, 'python-network-policy')
    t.same(stored?.spec, {
      podSelector: { matchLabels: { [labels.templateRefHash]: nameHash('python') } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [router] }],
      egress: [
        {
          to: [
            { ipBlock: { cidr: '0.0.0.0/0', except } },
            { ipBlock: { cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] } },
          ],
        },
      ],
    })
    const pod = await podOf('python')
    t.equal(pod?.metadata.labels?.[labels.templateRefHash], nameHash('python'), 'and it selects the Pods')
    t.match(pod?.spec, { dnsPolicy: 'None', dnsConfig: { nameservers: ['8.8.8.8', '1.1.1.1'] } })
    t.match(pod?.spec, { automountServiceAccountToken: false, enableServiceLinks: false })
  })

  await t.test('rules of the template’s own take the place of the default, and the rest stays closed', async (t) => {
    const ingress = [{ ports: [{ port: 9090, protocol: 'TCP' }] }]
    const patch = (spec: object) =>
      kubectl(['patch', 'sandboxtemplate', 'python', '--type=merge', '-p', JSON.stringify({ spec })])
    await patch({ networkPolicy: { ingress } })
    await until('the change', async () => {
      const spec = (await find(networkPolicies, 'python-network-policy'))?.spec
      return spec?.ingress?.[0]?.ports !== undefined
    })
    const { spec } = (await find(networkPolicies, 'python-network-policy')) ?? {}
    t.same(spec?.ingress, ingress)
    t.notOk(spec?.egress?.length)
    t.same(spec?.policyTypes, ['Ingress', 'Egress'])
    await patch({ networkPolicy: null, networkPolicyManagement: 'Unmanaged' })
    await until('its end', async () => (await find(networkPolicies, 'python-network-policy')) === undefined)
    await patch({ networkPolicyManagement: 'Managed' })
    await until('its return', async () => (await find(networkPolicies, 'python-network-policy')) !== undefined)
    await kubectl(['delete', 'swp', 'python'])
  })

  await t.test('it goes after its template, when no sandbox needs it', { timeout: 60_000 }, async () => {
    await kubectl(['delete', 'sandboxtemplate', 'python'])
    await until('its end', async () => (await find(networkPolicies, 'python-network-policy')) === undefined)
  })
})
