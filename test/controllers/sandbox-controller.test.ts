import t from 'tap'
import { pods, services } from '../../src/api/core.ts'
import { sandboxKind, type Sandbox } from '../../src/api/kinds.ts'
import { nameHash } from '../../src/api/hash.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { createSandboxController } from '../../src/controllers/sandbox-controller.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { kubeError } from '../support/memory-api.ts'
import { claimOwner, poolOwner } from '../planning/sandbox-fixtures.ts'
import { Harness } from './sandbox-harness.ts'

const spec: Sandbox['spec'] = { podTemplate: { spec: { containers: [{ name: 'main', image: 'python' }] } } }
const alone = (more: Partial<Sandbox['spec']> = {}): Sandbox => ({
  metadata: { name: 'box', namespace: 'ns' },
  spec: { ...spec, ...more },
})
const poolMarks = { [labels.warmPool]: nameHash('pool'), [labels.templateRefHash]: nameHash('python') }
const member = (): Sandbox => ({
  metadata: { name: 'box', namespace: 'ns', labels: poolMarks, ownerReferences: [poolOwner] },
  spec: { podTemplate: { ...spec.podTemplate, metadata: { annotations: { [annotations.safeToEvict]: 'true' } } } },
})
/** What the claim controller's adoption patch makes of a member. */
const adopted = ({ metadata, ...rest }: Sandbox): Sandbox => ({
  ...rest,
  metadata: {
    ...metadata,
    generation: 2,
    ownerReferences: [claimOwner],
    labels: { [labels.templateRefHash]: nameHash('python'), [labels.claimUid]: 'claim-uid' },
  },
  spec,
})
const readyOf = (sandbox: Sandbox | undefined) => findCondition(sandbox?.status?.conditions, 'Ready')

const harness = (t: ConstructorParameters<typeof Harness>[0]) => new Harness(t, createSandboxController)

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

t.test('a cache that lags behind our own writes leads to none being repeated', async (t) => {
  const h = harness(t)
  h.caches.pods.pause()
  await h.put(sandboxKind, alone({ service: true }))
  t.same(await h.requests(() => h.look('ns/box')), ['create pods', 'create services'])
  t.same(await h.requests(() => h.look('ns/box')), [])
  h.caches.sandboxes.pause()
  await h.kubelet()
  h.caches.pods.resume()
  await h.settle()
  t.equal(readyOf(h.sandbox())?.status, 'True')
  t.same(await h.requests(() => h.look('ns/box')), [])
  h.caches.sandboxes.resume()
  t.same(await h.requests(() => h.look('ns/box')), [])
})

t.test('a deletion that a lagging cache does not show is not asked for twice', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone())
  await h.settle()
  h.caches.pods.pause()
  const suspended = { ...h.sandbox()!, spec: { ...spec, operatingMode: 'Suspended' as const } }
  t.same(await h.requests(() => h.put(sandboxKind, suspended)), ['delete pods', 'patch sandboxes/status'])
  t.same(await h.requests(() => h.look('ns/box')), [])
})

t.test('a Pod deleted behind a lagging cache is found out by a live read, and made again', async (t) => {
  const h = harness(t)
  h.caches.pods.pause()
  await h.put(sandboxKind, alone())
  await h.settle()
  await h.drop(pods, h.pod()!)
  await h.advance(1_000)
  t.same(await h.requests(() => h.look('ns/box')), [], 'our own answer is believed for a while')
  t.same((await h.requests(() => h.advance(31_000))).slice(0, 2), ['get pods', 'create pods'])
})

t.test('a POST whose reply was lost is repeated, and the Pod it made is recognised as ours', async (t) => {
  const h = harness(t)
  let losses = 1
  h.api.fault = ({ verb, plural }) => (verb === 'create' && plural === 'pods' && losses-- > 0 ? 'lost' : undefined)
  h.caches.pods.pause()
  await h.put(sandboxKind, member())
  const requests = await h.requests(() => h.advance(1_000))
  t.same(
    requests.filter((each) => each.endsWith('pods')),
    ['create pods', 'create pods', 'get pods'],
  )
  t.equal(h.api.all(pods).length, 1)
  t.equal(h.sandbox()?.status?.podUID, h.pod()?.metadata.uid)
})

t.test('a Pod planted in the place of a pool member is replaced, though it names the right owner', async (t) => {
  const h = harness(t)
  h.caches.sandboxes.pause()
  const { uid = '' } = (await h.put(sandboxKind, member())).metadata
  const planted = {
    metadata: {
      name: 'box',
      namespace: 'ns',
      labels: { [labels.sandboxNameHash]: nameHash('box') },
      ownerReferences: [{ ...poolOwner, apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name: 'box', uid }],
    },
    spec: { containers: [{ name: 'evil', image: 'evil' }] },
  }
  await h.put(pods, planted)
  t.same(await h.requests(() => h.caches.sandboxes.resume()), ['delete pods', 'create pods'])
  t.equal(h.pod()?.spec?.containers[0]?.image, 'python')
})

t.test('a crash between the POST and the status write costs a pool member its Pod, and nothing else', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, member())
  await h.settle()
  const first = h.pod()?.metadata.uid
  await h.crash()
  const requests = await h.requests(async () => {
    h.start()
    await h.look('ns/box')
  })
  t.same(requests, ['delete pods', 'create pods'])
  await h.kubelet()
  await h.settle()
  t.not(h.sandbox()?.status?.podUID, first)
  t.equal(h.sandbox()?.status?.podUID, h.pod()?.metadata.uid)
})

t.test('a crash after the status write costs nothing', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, member())
  await h.settle()
  await h.kubelet()
  await h.settle()
  await h.crash()
  t.same(
    await h.requests(async () => {
      h.start()
      await h.look('ns/box')
    }),
    [],
  )
})

t.test(
  "someone else's Pod without our label is found by the refused POST, named, and looked at until it goes",
  async (t) => {
    const h = harness(t)
    const theirs = await h.put(pods, { metadata: { name: 'box', namespace: 'ns' }, spec: { containers: [] } })
    await h.put(sandboxKind, alone())
    t.same(await h.requests(() => h.settle()), ['create pods', 'get pods'])
    await h.advance(1_000)
    t.match(readyOf(h.sandbox())?.message, /Pod box exists and is not this sandbox's/)
    t.equal(h.pod()?.metadata.uid, theirs.metadata.uid)
    await h.drop(pods, theirs)
    await h.advance(16_000)
    t.equal(h.pod()?.metadata.ownerReferences?.[0]?.uid, h.sandbox()?.metadata.uid)
  },
)

t.test('a Pod that was offered is taken over, and the sandbox is ready with it', async (t) => {
  const h = harness(t)
  await h.put(pods, {
    metadata: { name: 'box', namespace: 'ns', labels: { [labels.adoptable]: 'true' } },
    spec: { containers: [] },
  })
  await h.kubelet()
  await h.put(sandboxKind, alone())
  await h.settle()
  t.match(h.pod()?.metadata, { ownerReferences: [{ uid: h.sandbox()?.metadata.uid }] })
  t.equal(readyOf(h.sandbox())?.status, 'True')
  t.equal(h.sandbox()?.status?.podUID, undefined, 'we did not make it')
})

t.test(
  'a recreated sandbox waits for the Pod of its predecessor, and makes its own as soon as that is gone',
  async (t) => {
    const h = harness(t)
    await h.put(sandboxKind, alone())
    await h.settle()
    const old = h.pod()!
    await h.drop(sandboxKind, h.sandbox()!)
    await h.put(pods, {
      ...old,
      metadata: { ...old.metadata, deletionTimestamp: new Date(h.clock.now()).toISOString() },
    })
    await h.put(sandboxKind, alone())
    t.same(await h.requests(() => h.settle()), [])
    t.same(await h.requests(() => h.drop(pods, h.pod()!)), ['create pods'])
    t.not(h.pod()?.metadata.uid, old.metadata.uid)
  },
)

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

t.test('a sandbox that was extended while it was marked is not deleted', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone({ shutdownTime: '2030-01-01T12:01:00Z', shutdownPolicy: 'Delete' }))
  await h.settle()
  // The extension arrives right before our delete of the sandbox does.
  h.api.fault = async ({ verb, plural }) => {
    if (verb !== 'delete' || plural !== 'sandboxes') return undefined
    h.api.fault = () => undefined
    const sandbox = h.sandbox()!
    await h.put(sandboxKind, { ...sandbox, spec: { ...sandbox.spec, shutdownTime: '2030-01-01T13:00:00Z' } })
    return undefined
  }
  await h.advance(60_000)
  await h.advance(1_000)
  t.ok(h.sandbox())
  t.ok(h.pod())
})

t.test('a delete of a Pod carries its UID, so that a Pod made meanwhile under its name lives', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone())
  await h.settle()
  h.caches.pods.pause()
  await h.drop(pods, h.pod()!)
  const other = await h.put(pods, { metadata: { name: 'box', namespace: 'ns' }, spec: { containers: [] } })
  const sandbox = h.sandbox()!
  await h.put(sandboxKind, { ...sandbox, spec: { ...sandbox.spec, operatingMode: 'Suspended' } })
  await h.advance(100)
  t.ok(h.api.count('delete', 'pods') > 0)
  t.equal(h.pod()?.metadata.uid, other.metadata.uid)
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

t.test('a status write that meets a newer sandbox is computed again', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone())
  await h.settle()
  let conflicts = 2
  h.api.fault = ({ subresource }) => (subresource === 'status' && conflicts-- > 0 ? kubeError('Conflict') : undefined)
  await h.kubelet()
  await h.advance(1_000)
  t.equal(readyOf(h.sandbox())?.status, 'True')
})

t.test('the status is published also when a step fails', async (t) => {
  const h = harness(t)
  await h.put(sandboxKind, alone())
  await h.settle()
  await h.kubelet()
  await h.settle()
  h.api.fault = ({ verb, plural }) => (verb === 'create' && plural === 'pods' ? kubeError('ServerError') : undefined)
  await h.drop(pods, h.pod()!)
  await h.settle()
  t.equal(readyOf(h.sandbox())?.status, 'False')
})
