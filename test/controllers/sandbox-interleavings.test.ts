import t from 'tap'
import { pods } from '../../src/api/core.ts'
import { sandboxKind } from '../../src/api/kinds.ts'
import { nameHash } from '../../src/api/hash.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { kubeError } from '../support/memory-api.ts'
import { poolOwner } from '../planning/sandbox-fixtures.ts'
import { alone, harness, member, readyOf, spec } from './sandbox-cases.ts'

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

t.test('a planted Pod without our label delays a pool member no longer than it takes to go', async (t) => {
  const h = harness(t)
  h.caches.sandboxes.pause()
  const { uid = '' } = (await h.put(sandboxKind, member())).metadata
  const ownerReferences = [{ ...poolOwner, apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name: 'box', uid }]
  const metadata = { name: 'box', namespace: 'ns', ownerReferences, finalizers: ['example.com/kubelet'] }
  await h.put(pods, { metadata, spec: { containers: [{ name: 'evil', image: 'evil' }] } })
  await h.requests(() => h.caches.sandboxes.resume())
  await h.advance(20_000)
  t.match(readyOf(h.sandbox())?.message, 'Pod box is being deleted.')
  await h.put(pods, { ...h.pod()!, metadata: { ...h.pod()!.metadata, finalizers: [] } })
  await h.drop(pods, h.pod()!)
  await h.advance(2_000)
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
    await h.advance(2_000)
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
