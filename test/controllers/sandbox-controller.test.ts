import t from 'tap'
import { pods, services } from '../../src/api/core.ts'
import { sandboxKind } from '../../src/api/kinds.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { kubeError } from '../support/memory-api.ts'
import { adopted, alone, harness, member, readyOf } from './sandbox-cases.ts'

t.test('a sandbox costs one POST of its Pod and one status write, with everything in it', async (t) => {
  const h = harness(t)
  const requests = await h.requests(async () => {
    await h.put(sandboxKind, member())
    await h.settle()
    await h.kubelet()
  })
  t.same(requests, ['create pods', 'patch sandboxes/status'])
  t.match(h.sandbox()?.status, { phase: 'Running', podIPs: ['10.0.0.7'], nodeName: 'node-1' })
  t.equal(h.sandbox()?.status?.podUID, h.pod()?.metadata.uid)
})

t.test('a sandbox that takes longer says so within a second', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone())
  await h.advance(999)
  t.equal(h.sandbox()?.status, undefined)
  await h.advance(1)
  t.match(readyOf(h.sandbox()), { status: 'False', reason: 'DependenciesNotReady' })
})

t.test('an adoption costs two writes: the Pod at once, the generation within a second', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, member())
  await h.settle()
  await h.kubelet()
  await h.settle()
  const atOnce = await h.requests(() => h.put(sandboxKind, adopted(h.sandbox()!)))
  t.same(atOnce, ['patch pods'])
  t.match(h.pod()?.metadata.labels, { [labels.claimUid]: 'claim-uid', [labels.warmPool]: undefined })
  t.equal(h.pod()?.metadata.annotations?.[annotations.safeToEvict], undefined)
  t.same(await h.requests(() => h.advance(1_000)), ['patch sandboxes/status'])
  t.equal(readyOf(h.sandbox())?.observedGeneration, 2)
  t.same(await h.requests(() => h.advance(60_000)), [], 'and then it is at rest')
})

t.test('while claims wait, the Pod of an adopted sandbox is patched only when they no longer do', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, member())
  await h.settle()
  await h.kubelet()
  await h.settle()
  h.claimsWaiting = 3
  t.same(await h.requests(() => h.put(sandboxKind, adopted(h.sandbox()!))), [])
  h.claimsWaiting = 0
  t.same(await h.requests(() => h.advance(100)), ['patch pods'])
})

t.test('an exhausted quota is named, and the Pod is made once the quota is freed', async (t) => {
  const h = harness(t)
  let isFull = true
  h.api.fault = ({ verb, plural }) =>
    isFull && verb === 'create' && plural === 'pods'
      ? kubeError(
          'Forbidden',
          'pods "box" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1',
        )
      : undefined
  await h.put(sandboxKind, alone())
  await h.settle()
  t.match(readyOf(h.sandbox()), { status: 'False', reason: 'QuotaExceeded', message: /exceeded quota: small/ })
  t.match(h.events, [{ about: 'box', reason: 'QuotaExceeded' }])
  const attempts = (await h.requests(() => h.advance(60_000))).filter((each) => each === 'create pods').length
  t.ok(attempts >= 6 && attempts <= 10, `asks again at least each 10 s, and not at every moment: ${attempts}`)
  isFull = false
  await h.advance(10_000)
  t.ok(h.pod())
})

t.test(
  'a Pod that the API server finds invalid is reported, and tried again when the sandbox is changed',
  async (t) => {
    const h = harness(t)
    h.api.fault = ({ verb, plural, body }) =>
      verb === 'create' && plural === 'pods' && JSON.stringify(body).includes('"image":"python"')
        ? kubeError('Invalid', 'no such thing')
        : undefined
    await h.put(sandboxKind, alone())
    await h.settle()
    t.match(readyOf(h.sandbox()), { reason: 'ReconcilerError', message: /refused the Pod: no such thing/ })
    const sandbox = h.sandbox()!
    const mended = { podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3' }] } } }
    t.ok(
      (
        await h.requests(() =>
          h.put(sandboxKind, { ...sandbox, metadata: { ...sandbox.metadata, generation: 2 }, spec: mended }),
        )
      ).includes('create pods'),
    )
    t.ok(h.pod())
  },
)

t.test('a namespace that is being deleted ends the pass silently', async (t) => {
  const h = harness(t)
  h.api.fault = ({ verb, plural }) =>
    verb === 'create' && plural === 'pods' ? kubeError('Forbidden', 'no', 'NamespaceTerminating') : undefined
  await h.put(sandboxKind, alone())
  t.same(await h.requests(() => h.advance(60_000)), ['create pods'])
  t.same(h.events, [])
})

t.test('a drained Pod is told at once, and another one is made', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone())
  await h.settle()
  await h.kubelet()
  await h.settle()
  const pod = h.pod()!
  await h.put(pods, { ...pod, metadata: { ...pod.metadata, deletionTimestamp: new Date(h.clock.now()).toISOString() } })
  await h.settle()
  t.match([readyOf(h.sandbox())?.status, h.sandbox()?.status?.podIPs], ['False', undefined])
  t.same(await h.requests(() => h.drop(pods, h.pod()!)), ['create pods'])
})

t.test('suspending deletes the Pod, and running again makes another', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone({ service: true }))
  await h.settle()
  await h.kubelet()
  await h.settle()
  const mode = async (operatingMode: 'Suspended' | 'Running') => {
    const sandbox = h.sandbox()!
    await h.put(sandboxKind, { ...sandbox, spec: { ...sandbox.spec, operatingMode } })
    await h.settle()
  }
  await mode('Suspended')
  t.equal(h.pod(), undefined)
  t.equal(h.api.all(services).length, 1)
  t.match(h.sandbox()?.status, { phase: 'Paused' })
  await mode('Running')
  t.ok(h.pod())
})

t.test('at its shutdownTime a sandbox is marked, then its Pod goes, then it', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone({ shutdownTime: '2030-01-01T12:01:00Z', shutdownPolicy: 'Delete' }))
  await h.settle()
  await h.kubelet()
  await h.settle()
  t.same(await h.requests(() => h.advance(59_999)), [])
  t.same(await h.requests(() => h.advance(1)), ['patch sandboxes/status', 'delete pods', 'delete sandboxes'])
  t.match(h.events, [{ about: 'box', reason: 'SandboxExpired' }])
})

t.test('recreateFailedPods takes effect on sandboxes that failed before it was set', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone())
  await h.settle()
  await h.kubelet('box', { phase: 'Failed' })
  await h.advance(20_000)
  const failed = h.pod()?.metadata.uid
  t.match(h.sandbox()?.status, { phase: 'Failed' })
  await h.reconfigure({ ...h.config, sandboxes: { ...h.config.sandboxes, recreateFailedPods: true } })
  t.ok(h.pod())
  t.not(h.pod()?.metadata.uid, failed)
})
