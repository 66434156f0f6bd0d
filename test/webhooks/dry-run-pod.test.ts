import t from 'tap'
import type { Sandbox, SandboxSet, SandboxTemplate } from '../../src/api/kinds.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { KubeError } from '../../src/kube/errors.ts'
import type { Subject } from '../../src/policy/rule.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { startDeadline } from '../../webhooks/deadline.ts'
import { podSourceOf, tryPod } from '../../webhooks/dry-run-pod.ts'
import { kubeError, StubClient } from './stores.ts'

const podTemplate = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'main', image: 'python' }] } }
const template: SandboxTemplate = { metadata: { name: 't', namespace: 'ns' }, spec: { podTemplate } }
const set: SandboxSet = { metadata: { name: 's', namespace: 'ns' }, spec: { replicas: 1, template: podTemplate } }
const sandbox: Sandbox = { metadata: { name: 'x', namespace: 'ns' }, spec: { podTemplate } }

const subject = (kind: Subject['kind'], object: Subject['object'], rest: Partial<Subject> = {}): Subject => ({
  kind,
  object,
  operation: 'CREATE',
  namespace: 'ns',
  actor: 'user',
  username: 'alice',
  ...rest,
})

async function tried(asked: Subject, onCreate: StubClient['onCreate'] = async () => undefined) {
  const client = new StubClient()
  client.onCreate = onCreate
  const clock = new ManualClock()
  const source = podSourceOf(asked)
  if (!source) throw new Error('the subject has no Pod')
  const answer = tryPod(source, 'ns', { client, config: defaultConfig, deadline: startDeadline(clock, 1000) })
  return { answer, client, clock }
}

t.test('the Pod is tried as a dry-run, strictly, with secure defaults and no name of its own', async (t) => {
  const { answer, client } = await tried(subject('SandboxTemplate', template))
  t.strictSame(await answer, { kind: 'found', value: { accepted: true } })
  t.match(client.created, [
    {
      pod: {
        kind: 'Pod',
        metadata: { generateName: 'sandgate-dry-run-', namespace: 'ns', labels: { app: 'x' } },
        spec: { containers: [{ name: 'main' }], automountServiceAccountToken: false, dnsPolicy: 'None' },
      },
      options: { dryRun: true, fieldValidation: 'Strict' },
    },
  ])
  t.equal(client.created[0]?.pod.metadata.name, undefined)
})

t.test('each kind is tried as what the controllers would make of it', async (t) => {
  const ofSet = await tried(subject('SandboxSet', set))
  t.equal(ofSet.client.created[0]?.pod.spec?.dnsPolicy, 'None', 'an inline template has a closed network')
  const alone = await tried(subject('Sandbox', sandbox))
  t.equal(alone.client.created[0]?.pod.spec?.dnsPolicy, undefined, 'a stand-alone Sandbox keeps its DNS')
})

t.test('volume claim templates stand in for the volumes of their names', async (t) => {
  const spec = {
    podTemplate: {
      spec: {
        ...podTemplate.spec,
        volumes: [
          { name: 'data', emptyDir: {} },
          { name: 'tmp', emptyDir: {} },
        ],
      },
    },
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
  }
  const { client } = await tried(subject('SandboxTemplate', { ...template, spec }))
  t.strictSame(client.created[0]?.pod.spec?.volumes, [
    { name: 'tmp', emptyDir: {} },
    { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
  ])
})

t.test('what the API server says of the Pod itself is a refusal, with its causes', async (t) => {
  const causes = [{ field: 'spec.containers[0].image', message: 'Required value', reason: 'FieldValueRequired' }]
  const invalid = new KubeError('Invalid', 'Pod is invalid', { status: 422, reason: 'Invalid', causes })
  const { answer } = await tried(subject('SandboxTemplate', template), () => Promise.reject(invalid))
  t.strictSame(await answer, { kind: 'found', value: { accepted: false, causes } })
  const message = 'unknown field "spec.contaners"'
  const undecodable = kubeError('BadRequest', 400, { reason: 'BadRequest', message })
  const second = await tried(subject('SandboxTemplate', template), () => Promise.reject(undecodable))
  t.strictSame(await second.answer, { kind: 'found', value: { accepted: false, causes: [{ message }] } })
})

const others: [string, KubeError][] = [
  [
    'quota or a missing service account',
    kubeError('Forbidden', 403, { reason: 'Forbidden', message: 'exceeded quota' }),
  ],
  ['a webhook that refuses without a code', kubeError('BadRequest', 400, { message: 'admission webhook denied' })],
  ['no dry-run support', kubeError('BadRequest', 400, { message: 'dry run is not supported' })],
  ['a server error', kubeError('ServerError', 500)],
]
for (const [what, error] of others) {
  t.test(`${what} says nothing about the template`, async (t) => {
    const { answer } = await tried(subject('SandboxTemplate', template), () => Promise.reject(error))
    t.strictSame(await answer, { kind: 'unknown', because: error.message })
  })
}

t.test('no answer in time leaves it unknown', async (t) => {
  const { answer, clock } = await tried(subject('SandboxTemplate', template), () => new Promise(() => undefined))
  await clock.advance(1000)
  t.strictSame(await answer, { kind: 'unknown', because: 'no answer in time' })
})

t.test('only a Pod that is new and not made by the controllers is tried', async (t) => {
  t.equal(podSourceOf(subject('Sandbox', sandbox, { actor: 'controller' })), undefined)
  t.equal(podSourceOf(subject('Sandbox', sandbox, { operation: 'DELETE' })), undefined)
  const relabelled = { ...template, metadata: { name: 't', labels: { a: 'b' } } }
  t.equal(podSourceOf(subject('SandboxTemplate', relabelled, { operation: 'UPDATE', oldObject: template })), undefined)
  const changed = { ...template, spec: { podTemplate: { spec: { containers: [] } } } }
  t.ok(podSourceOf(subject('SandboxTemplate', changed, { operation: 'UPDATE', oldObject: template })))
  const byReference: SandboxSet = { metadata: {}, spec: { replicas: 1, templateRef: { name: 't' } } }
  t.equal(podSourceOf(subject('SandboxSet', byReference)), undefined)
})
