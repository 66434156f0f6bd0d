import * as fc from 'fast-check'
import { default as jsonPatch } from 'fast-json-patch'
import t from 'tap'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import { patchBetween } from '../../webhooks/mutate.ts'
import { buildGate, claim, review, template, type Answer } from './reviews.ts'

type Patch = { op: string; path: string; value?: unknown }[]
const patchIn = ({ patch }: Answer): Patch =>
  patch === undefined ? [] : (JSON.parse(Buffer.from(patch, 'base64').toString()) as Patch)
const patched = (object: KubeObject, answer: Answer): KubeObject =>
  jsonPatch.applyPatch(structuredClone(object), patchIn(answer) as []).newDocument

const set = {
  apiVersion: 'agents.kruise.io/v1alpha1',
  kind: 'SandboxSet',
  metadata: { name: 's', namespace: 'ns' },
  spec: { replicas: 1, template: { spec: { containers: [] } } },
}
const sandbox = {
  apiVersion: 'agents.x-k8s.io/v1beta1',
  kind: 'Sandbox',
  metadata: { name: 'x', namespace: 'ns' },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'i' }] } } },
}

t.test('a claim is stamped, with the parent created in the same operation', async (t) => {
  const gate = buildGate()
  const answer = await gate.ask('/mutate/claims', review('sandboxclaims', { object: claim() }))
  t.match(answer, { uid: 'u-1', allowed: true, patchType: 'JSONPatch' })
  const stamps = {
    [annotations.requestedBy]: 'alice',
    [annotations.webhookFirstObservedAt]: '2026-01-01T00:00:00.000000000Z',
  }
  t.strictSame(patchIn(answer), [{ op: 'add', path: '/metadata/annotations', value: stamps }])
})

t.test('a key with a slash is escaped, and the operations go no higher than they must', async (t) => {
  const object = claim({ metadata: { name: 'c', annotations: { mine: '1', 'a~b/c': '2' } } })
  const answer = await buildGate().ask('/mutate/claims', review('sandboxclaims', { object }))
  t.strictSame(
    patchIn(answer)
      .map(({ op, path }) => `${op} ${path}`)
      .toSorted((a, b) => a.localeCompare(b)),
    [
      'add /metadata/annotations/agents.x-k8s.io~1webhook-first-observed-at',
      'add /metadata/annotations/sandgate.dev~1requested-by',
    ],
  )
  t.strictSame(patchBetween({ metadata: { labels: { 'a~/b': '1' } } }, { metadata: { labels: { 'a~/b': '2' } } }), [
    { op: 'replace', path: '/metadata/labels/a~0~1b', value: '2' },
  ])
})

t.test('templates get their hash, sets their strategy, Sandboxes their secure defaults', async (t) => {
  const gate = buildGate()
  const forTemplate = await gate.ask('/mutate/templates', review('sandboxtemplates', { object: template() }))
  t.match(patched(template(), forTemplate).metadata.labels, { [labels.templateRefHash]: /^[0-9a-f]{8}$/ })
  const forSet = await gate.ask('/mutate/sets', review('sandboxsets', { object: set }))
  t.match(patched(set, forSet), { spec: { updateStrategy: { maxUnavailable: '20%' } } })
  const forSandbox = await gate.ask('/mutate/sandboxes', review('sandboxes', { object: sandbox }))
  t.match(patched(sandbox, forSandbox), { spec: { podTemplate: { spec: { automountServiceAccountToken: false } } } })
})

t.test('with nothing to change there is neither patch nor patchType', async (t) => {
  const gate = buildGate()
  const object = { ...set, spec: { ...set.spec, updateStrategy: { maxUnavailable: 1 } } }
  const answer = await gate.ask('/mutate/sets', review('sandboxsets', { object }))
  t.strictSame(answer, { uid: 'u-1', allowed: true })
})

t.test('an object that is being deleted is left alone, even one whose stamps were dropped', async (t) => {
  const metadata = { name: 'c', annotations: { [annotations.requestedBy]: 'alice' } }
  const oldObject = claim({ metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x/y'] } })
  const object = claim({ metadata: { name: 'c', deletionTimestamp: '2026-01-01T00:00:00Z' } })
  const ask = (old: unknown) =>
    buildGate().ask('/mutate/claims', review('sandboxclaims', { operation: 'UPDATE', object, oldObject: old }))
  t.strictSame(await ask(oldObject), { uid: 'u-1', allowed: true })
  t.ok((await ask(claim({ metadata }))).patch, 'the new object cannot say of itself that it is being deleted')
})

t.test('a deletion timestamp sent at creation does not keep the stamps off', async (t) => {
  const object = claim({ metadata: { name: 'c', deletionTimestamp: '2026-01-01T00:00:00Z' } })
  const answer = await buildGate().ask('/mutate/claims', review('sandboxclaims', { object }))
  t.match(patchIn(answer), [
    { op: 'add', path: '/metadata/annotations', value: { [annotations.requestedBy]: 'alice' } },
  ])
})

t.test('a deletion is never patched', async (t) => {
  const answer = await buildGate().ask(
    '/mutate/claims',
    review('sandboxclaims', { operation: 'DELETE', oldObject: claim() }),
  )
  t.strictSame(answer, { uid: 'u-1', allowed: true })
})

t.test('managedFields are never touched', async (t) => {
  const object = claim({ metadata: { name: 'c', managedFields: [{ manager: 'kubectl' }] } })
  const gate = buildGate({
    mutate: ({ object: { ...changed } }) =>
      Object.assign(changed, { metadata: { name: 'd', managedFields: [{ manager: 'us' }, {}] } }),
  })
  const answer = await gate.ask('/mutate/claims', review('sandboxclaims', { object }))
  t.strictSame(patchIn(answer), [{ op: 'replace', path: '/metadata/name', value: 'd' }])
})

t.test(
  'an object without the shape of its kind is left to the API server, whose answer is the better one',
  async (t) => {
    const object = claim({ spec: { warmPoolRef: 'pool' } })
    t.strictSame(await buildGate().ask('/mutate/claims', review('sandboxclaims', { object })), {
      uid: 'u-1',
      allowed: true,
    })
  },
)

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,10}$/)
const keys = fc.stringMatching(/^[a-z]{1,5}([~/][a-z]{1,5})?$/)
const metadata = fc.record(
  { name, generateName: name, labels: fc.dictionary(keys, name), annotations: fc.dictionary(keys, name) },
  { requiredKeys: [] },
)
const podSpec = fc.record(
  {
    containers: fc.array(fc.record({ name, image: name }), { maxLength: 3 }),
    automountServiceAccountToken: fc.boolean(),
    enableServiceLinks: fc.boolean(),
    securityContext: fc.record({ seccompProfile: fc.constant({ type: 'Unconfined' }) }, { requiredKeys: [] }),
    dnsPolicy: fc.constant('Default'),
  },
  { requiredKeys: ['containers'] },
)
const lifecycle = fc.record(
  { shutdownTime: fc.constant('2027-01-01T00:00:00Z'), ttlSecondsAfterFinished: fc.nat(100) },
  { requiredKeys: [] },
)
const podTemplate = fc.record({ metadata: fc.record({ labels: fc.dictionary(keys, name) }), spec: podSpec })
const objects = fc.oneof(
  fc
    .record({
      metadata,
      spec: fc.record({ warmPoolRef: fc.record({ name }), lifecycle }, { requiredKeys: ['warmPoolRef'] }),
    })
    .map((object) => ['claims', 'sandboxclaims', object] as const),
  fc
    .record({ metadata, spec: fc.record({ podTemplate }) })
    .map((object) => ['templates', 'sandboxtemplates', object] as const),
  fc
    .record({ metadata, spec: fc.record({ podTemplate }) })
    .map((object) => ['sandboxes', 'sandboxes', object] as const),
  fc
    .record({ metadata, spec: fc.record({ replicas: fc.nat(9), template: podTemplate }) })
    .map((object) => ['sets', 'sandboxsets', object] as const),
)

t.test('applying the patch and asking again changes nothing more', async () => {
  const claims = { ...defaultConfig.claims, defaultLifetime: '1h', defaultTtlAfterFinished: '5m' }
  const gate = buildGate({ config: () => ({ ...defaultConfig, claims }) })
  await fc.assert(
    fc.asyncProperty(objects, fc.nat(29_000), async ([path, plural, object], laterMs) => {
      const clean = JSON.parse(JSON.stringify(object)) as KubeObject
      const once = patched(clean, await gate.ask(`/mutate/${path}`, review(plural, { object: clean })))
      await gate.clock.advance(laterMs)
      const again = await gate.ask(`/mutate/${path}`, review(plural, { object: once }))
      return again.allowed && again.patch === undefined
    }),
    { numRuns: 300 },
  )
})
