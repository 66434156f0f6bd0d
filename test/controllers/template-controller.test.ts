import t from 'tap'
import { networkPolicies, pods, type NetworkPolicy } from '../../src/api/core.ts'
import {
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type SandboxTemplate,
} from '../../src/api/kinds.ts'
import { nameHash } from '../../src/api/hash.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { createTemplateController } from '../../src/controllers/template-controller.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { kubeError } from '../support/memory-api.ts'
import { Harness } from './sandbox-harness.ts'

const harness = (t: ConstructorParameters<typeof Harness>[0]) => new Harness(t, createTemplateController)
const blueprint = { podTemplate: { spec: { containers: [{ name: 'main', image: 'python' }] } } }
const hashLabel = (ref: string) => ({ [labels.templateRefHash]: nameHash(ref) })
const template = (spec: Partial<SandboxTemplate['spec']> = {}): SandboxTemplate => ({
  metadata: { name: 'python', namespace: 'ns', labels: hashLabel('python') },
  spec: { ...blueprint, ...spec },
})
const pool = { metadata: { name: 'pool', namespace: 'ns' }, spec: { sandboxTemplateRef: { name: 'python' } } }
const sandboxOf = (ref: string) => ({
  metadata: { name: 'box', namespace: 'ns', labels: hashLabel(ref) },
  spec: blueprint,
})
const podOf = (ref: string) => ({
  metadata: { name: 'box', namespace: 'ns', labels: { ...hashLabel(ref), [labels.sandboxNameHash]: nameHash('box') } },
  spec: { containers: [] },
})
const foreign: NetworkPolicy = {
  metadata: { name: 'python-network-policy', namespace: 'ns' },
  spec: { podSelector: {} },
}
const ours = 'python-network-policy'

async function withTemplate(h: Harness, spec: Partial<SandboxTemplate['spec']> = {}): Promise<void> {
  await h.put(sandboxTemplateKind, template(spec))
  await h.settle()
}

const isolation = (h: Harness) =>
  findCondition(h.api.all(sandboxWarmPoolKind)[0]?.status?.conditions, 'NetworkIsolated')

t.test('a template gets its policy with one request, and then costs none', async (t) => {
  const h = harness(t)
  t.same(await h.requests(() => withTemplate(h)), ['create networkpolicies'])
  t.match(h.policy(ours)?.spec?.podSelector, { matchLabels: hashLabel('python') })
  t.same(await h.requests(() => h.look('ns/python')), [])
  t.same(await h.requests(() => h.advance(600_000)), [])
})

t.test('a template without the label of its hash gets it', async (t) => {
  const h = harness(t)
  await h.put(sandboxTemplateKind, { ...template(), metadata: { name: 'python', namespace: 'ns' } })
  await h.settle()
  t.match(h.api.all(sandboxTemplateKind)[0]?.metadata.labels, hashLabel('python'))
})

t.test('an edit to the policy is put back, its removal too', async (t) => {
  const h = harness(t)
  await withTemplate(h)
  const policy = h.policy(ours)!
  await h.put(networkPolicies, {
    ...policy,
    metadata: { ...policy.metadata, labels: {} },
    spec: { podSelector: { matchLabels: hashLabel('python') }, ingress: [{}] },
  })
  await h.settle()
  t.same(h.policy(ours)?.spec, policy.spec)
  t.same(h.policy(ours)?.metadata.labels, policy.metadata.labels)
  await h.drop(networkPolicies, policy)
  await h.settle()
  t.ok(h.policy(ours))
})

t.test('other rules in the template change the policy, for sandboxes that are there as well', async (t) => {
  const h = harness(t)
  await withTemplate(h)
  const stored = h.api.all(sandboxTemplateKind)[0]!
  const egress = [{ to: [{ ipBlock: { cidr: '203.0.113.0/24' } }] }]
  await h.put(sandboxTemplateKind, { ...stored, spec: { ...stored.spec, networkPolicy: { egress } } })
  await h.settle()
  t.same(h.policy(ours)?.spec?.egress, egress)
})

t.test('another router namespace in the configuration changes every policy', async (t) => {
  const h = harness(t)
  await withTemplate(h)
  await h.reconfigure({ ...h.config, network: { ...h.config.network, routerNamespace: 'edge' } })
  t.match(JSON.stringify(h.policy(ours)?.spec?.ingress), /"edge"/)
})

t.test('Unmanaged deletes our policy, and nobody else’s', async (t) => {
  const h = harness(t)
  await withTemplate(h)
  const stored = h.api.all(sandboxTemplateKind)[0]!
  await h.put(sandboxTemplateKind, { ...stored, spec: { ...stored.spec, networkPolicyManagement: 'Unmanaged' } })
  await h.settle()
  t.equal(h.policy(ours), undefined)
  await h.put(networkPolicies, foreign)
  await h.look('ns/python')
  t.same(h.policy(ours)?.spec, { podSelector: {} })
})

t.test("someone else's policy of the name stays; the pools say so until it is gone", async (t) => {
  const h = harness(t)
  await h.put(networkPolicies, foreign)
  await h.put(sandboxWarmPoolKind, pool)
  await withTemplate(h)
  t.same(h.policy(ours)?.spec, { podSelector: {} })
  t.match(isolation(h), { status: 'False', reason: 'NetworkPolicyNameTaken', message: /python-network-policy/ })
  t.match(h.events, [{ about: 'pool', reason: 'NetworkPolicyNameTaken' }])
  t.same(await h.requests(() => h.advance(300_000)), [], 'and is said once')
  await h.drop(networkPolicies, h.policy(ours)!)
  await h.settle()
  t.equal(isolation(h)?.status, 'True')
  t.match(h.policy(ours)?.spec?.podSelector, { matchLabels: hashLabel('python') })
})

t.test('a pool that is made while its template is in trouble is told as well', async (t) => {
  const h = harness(t)
  await h.put(networkPolicies, foreign)
  await withTemplate(h)
  await h.put(sandboxWarmPoolKind, pool)
  await h.settle()
  t.equal(isolation(h)?.status, 'False')
})

t.test('a pool that never had trouble gets no condition', async (t) => {
  const h = harness(t)
  await h.put(sandboxWarmPoolKind, pool)
  await withTemplate(h)
  t.equal(isolation(h), undefined)
})

t.test('a foreign policy that the cache does not show yet is not overwritten', async (t) => {
  const h = harness(t)
  h.caches.networkPolicies.pause()
  await h.put(networkPolicies, foreign)
  t.same(await h.requests(() => withTemplate(h)), ['create networkpolicies', 'get networkpolicies'])
  t.same(h.policy(ours)?.spec, { podSelector: {} })
})

t.test('rules that the API server refuses close the network, and the pools say why', async (t) => {
  const h = harness(t)
  h.api.fault = ({ plural, body }) =>
    plural === 'networkpolicies' && JSON.stringify(body).includes('not-a-range')
      ? kubeError('Invalid', 'bad cidr')
      : undefined
  await h.put(sandboxWarmPoolKind, pool)
  await withTemplate(h, { networkPolicy: { egress: [{ to: [{ ipBlock: { cidr: 'not-a-range' } }] }] } })
  t.match(h.policy(ours)?.spec, { ingress: [], egress: [], policyTypes: ['Ingress', 'Egress'] })
  t.match(isolation(h), { status: 'False', reason: 'NetworkPolicyRefused', message: /bad cidr/ })
  const stored = h.api.all(sandboxTemplateKind)[0]!
  const { networkPolicy: _refused, ...mended } = stored.spec
  await h.put(sandboxTemplateKind, { ...stored, spec: mended })
  await h.settle()
  t.equal(h.policy(ours)?.spec?.egress?.length, 1)
  t.equal(isolation(h)?.status, 'True')
})

t.test('a policy outlives its template while a sandbox or its Pod needs it, and goes afterwards', async (t) => {
  const h = harness(t)
  await withTemplate(h)
  const sandbox = await h.put(sandboxKind, sandboxOf('python'))
  const pod = await h.put(pods, podOf('python'))
  await h.drop(sandboxTemplateKind, h.api.all(sandboxTemplateKind)[0]!)
  await h.advance(120_000)
  t.ok(h.policy(ours), 'the sandbox is there')
  await h.drop(sandboxKind, sandbox)
  await h.advance(120_000)
  t.ok(h.policy(ours), 'its Pod is there')
  await h.drop(pods, pod)
  await h.advance(60_000)
  t.equal(h.policy(ours), undefined)
})

t.test('a policy is not deleted on the word of a cache that lags', async (t) => {
  const h = harness(t)
  await withTemplate(h)
  h.caches.sandboxes.pause()
  const sandbox = await h.put(sandboxKind, sandboxOf('python'))
  await h.drop(sandboxTemplateKind, h.api.all(sandboxTemplateKind)[0]!)
  await h.advance(60_000)
  t.ok(h.policy(ours))
  await h.drop(sandboxKind, sandbox)
  await h.advance(60_000)
  t.equal(h.policy(ours), undefined)
})

t.test('a process that was not there when the template went finds the policy that is left', async (t) => {
  const h = harness(t)
  await withTemplate(h)
  await h.crash()
  await h.drop(sandboxTemplateKind, h.api.all(sandboxTemplateKind)[0]!)
  h.start()
  await h.put(networkPolicies, h.policy(ours)!)
  await h.advance(60_000)
  t.equal(h.policy(ours), undefined)
})

t.test('a template that is made again recognises its policy and puts it in line', async (t) => {
  const h = harness(t)
  await withTemplate(h, { networkPolicy: {} })
  const before = h.policy(ours)?.metadata.uid
  await h.put(sandboxKind, sandboxOf('python'))
  await h.drop(sandboxTemplateKind, h.api.all(sandboxTemplateKind)[0]!)
  await h.advance(1_000)
  await withTemplate(h)
  t.equal(h.policy(ours)?.metadata.uid, before)
  t.equal(h.policy(ours)?.spec?.ingress?.length, 1)
})

t.test(
  'a set with an inline template gets the default policy; one that refers to a template gets none of its own',
  async (t) => {
    const h = harness(t)
    const inline = { metadata: { name: 'py', namespace: 'ns' }, spec: { replicas: 1, template: blueprint.podTemplate } }
    const referring = {
      metadata: { name: 'ref', namespace: 'ns' },
      spec: { replicas: 1, templateRef: { name: 'python' } },
    }
    await h.put(sandboxSetKind, inline)
    await h.put(sandboxSetKind, referring)
    await h.settle()
    t.match(h.policy('py-set-network-policy')?.spec?.podSelector, { matchLabels: hashLabel('SandboxSet/py') })
    t.same(
      h.api.all(networkPolicies).map(({ metadata }) => metadata.name),
      ['py-set-network-policy'],
    )
  },
)

t.test(
  'a set that changes to a template of its own name keeps the old policy until the old sandboxes are gone',
  async (t) => {
    const h = harness(t)
    const set = await h.put(sandboxSetKind, {
      metadata: { name: 'py', namespace: 'ns' },
      spec: { replicas: 1, template: blueprint.podTemplate },
    })
    await h.settle()
    const sandbox = await h.put(sandboxKind, sandboxOf('SandboxSet/py'))
    await h.put(sandboxSetKind, { ...set, spec: { replicas: 1, templateRef: { name: 'python' } } })
    await h.advance(60_000)
    t.ok(h.policy('py-set-network-policy'))
    await h.drop(sandboxKind, sandbox)
    await h.advance(60_000)
    t.equal(h.policy('py-set-network-policy'), undefined)
  },
)

t.test('a namespace that is being deleted makes no noise', async (t) => {
  const h = harness(t)
  h.api.fault = ({ verb, plural }) =>
    verb === 'create' && plural === 'networkpolicies' ? kubeError('Forbidden', 'no', 'NamespaceTerminating') : undefined
  t.same(await h.requests(() => withTemplate(h)), ['create networkpolicies'])
  t.same(await h.requests(() => h.advance(60_000)), [])
})
