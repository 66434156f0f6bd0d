import { pino } from 'pino'
import t from 'tap'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { startControlPlane } from '../../devcluster/control-plane.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import { events, pods } from '../../src/api/core.ts'
import { loadKubeConfig } from '../../src/kube/config.ts'
import type { KubeObject, Resource } from '../../src/kube/object.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createEventRecorder } from '../../src/telemetry/events.ts'
import { clientOf, rejectionOf } from './scripted-server.ts'

// What the scripted server takes on trust, asked of the real one.
t.setTimeout(120_000)
const log = pino({ level: 'error' }, pino.destination(2))
const binaries = await findControlPlane((line) => t.comment(line))
const controlPlane = await startControlPlane({ binaries, log })
t.teardown(() => controlPlane.stop())
const namespace = 'kube-test'
await controlPlane.createNamespace(namespace)
const codes: string[] = []
const client = clientOf(t, loadKubeConfig({ kubeconfig: controlPlane.kubeconfig }), {
  onRequest: ({ code }) => codes.push(code),
})

type ConfigMap = KubeObject & { data?: Record<string, string> }
const configMaps: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
}
const named = (name: string, data: Record<string, string> = {}): ConfigMap => ({ metadata: { namespace, name }, data })

t.test('an object lives through every verb', async (t) => {
  const ref = { namespace, name: 'a' }
  const created = await client.create(configMaps, named('a', { x: '1' }))
  t.match(await rejectionOf(client.create(configMaps, named('a'))), { code: 'AlreadyExists', status: 409 })

  const { resourceVersion, uid = '' } = created.metadata
  const patched = await client.patch(configMaps, ref, { data: { y: '2' } }, { type: 'merge' })
  t.same(patched.data, { x: '1', y: '2' })
  const stale = { ...created, data: {} }
  t.match(await rejectionOf(client.replace(configMaps, stale)), { code: 'Conflict', reason: 'Conflict' })
  const staleMerge = { metadata: { resourceVersion }, data: { z: '3' } }
  t.match(await rejectionOf(client.patch(configMaps, ref, staleMerge, { type: 'merge' })), { code: 'Conflict' })
  await client.patch(configMaps, ref, [{ op: 'remove', path: '/data/x' }], { type: 'json' })

  const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { y: '9' } }
  const asOther = { type: 'apply', fieldManager: 'other' } as const
  t.match(await rejectionOf(client.patch(configMaps, ref, applied, asOther)), {
    code: 'Conflict',
    causes: [{ reason: 'FieldManagerConflict', field: '.data.y' }],
  })
  await client.patch(configMaps, ref, applied, { ...asOther, force: true })
  t.same((await client.get(configMaps, ref)).data, { y: '9' })

  t.match(await rejectionOf(client.delete(configMaps, ref, { uid: 'another' })), { code: 'Conflict' })
  await client.delete(configMaps, ref, { uid })
  t.match(await rejectionOf(client.get(configMaps, ref)), { code: 'NotFound', reason: 'NotFound' })
  t.match(await rejectionOf(client.delete(configMaps, ref)), { code: 'NotFound' })
})

t.test('a dry run leaves nothing behind, and says what is wrong field by field', async (t) => {
  const pod = { metadata: { namespace, name: 'p' }, spec: { containers: [] } }
  t.match(await rejectionOf(client.create(pods, pod, { dryRun: true })), {
    code: 'Invalid',
    causes: [{ field: 'spec.containers', reason: 'FieldValueRequired' }],
  })
  await client.create(configMaps, named('dry'), { dryRun: true })
  t.match(await rejectionOf(client.get(configMaps, { namespace, name: 'dry' })), { code: 'NotFound' })
})

t.test('a list in pages and a watch from its version see everything once', async (t) => {
  for (const name of ['b1', 'b2', 'b3']) await client.create(configMaps, named(name))
  const isOurs = { namespace, fieldSelector: 'metadata.name!=kube-root-ca.crt' }
  const first = await client.list(configMaps, { namespace, limit: 2 })
  const rest = await client.list(configMaps, { namespace, limit: 2, continue: first.metadata.continue ?? '' })
  const listed = [...first.items, ...rest.items]
  t.ok(listed.every(({ kind, apiVersion }) => kind === 'ConfigMap' && apiVersion === 'v1'))

  const controller = new AbortController()
  const resourceVersion = rest.metadata.resourceVersion ?? ''
  const watch = await client.watch(configMaps, { ...isOurs, resourceVersion, signal: controller.signal })
  await client.create(configMaps, named('b4', { text: 'grün 🌲' }))
  await client.delete(configMaps, { namespace, name: 'b1' })
  const seen: string[] = []
  for await (const { type, object } of watch) {
    seen.push(`${type} ${(object as ConfigMap).metadata.name}`)
    if (seen.length === 2) break
  }
  t.same(seen, ['ADDED b4', 'DELETED b1'])
})

t.test('a watch ends when its time is up', async (t) => {
  const { metadata } = await client.list(configMaps, { namespace })
  const { signal } = new AbortController()
  const resourceVersion = metadata.resourceVersion ?? ''
  const watch = await client.watch(configMaps, { namespace, resourceVersion, timeoutSeconds: 1, signal })
  const types: string[] = []
  for await (const { type } of watch) types.push(type)
  t.same(
    types.filter((type) => type !== 'BOOKMARK'),
    [],
  )
})

t.test('the clock of a server on the same machine shows no offset', (t) => {
  t.equal(client.serverClockOffsetMs(), 0)
  t.end()
})

t.test('Events are accepted and counted; those of a namespace that ends are dropped in silence', async (t) => {
  const logged: string[] = []
  const recorder = createEventRecorder({
    client,
    component: 'sandgate',
    clock: systemClock,
    log: pino({}, { write: (text) => void logged.push(text) }),
  })
  const object = await client.create(configMaps, named('eventful'))
  recorder.record(object, 'Warning', 'Tested', 'it was tested')
  await recorder.flush()
  recorder.record(object, 'Warning', 'Tested', 'it was tested')
  await recorder.flush()
  const { items } = await client.list(events, { namespace, fieldSelector: `involvedObject.uid=${object.metadata.uid}` })
  t.match(items, [{ reason: 'Tested', type: 'Warning', count: 2, source: { component: 'sandgate' } }])
  t.equal(items.length, 1)

  await controlPlane.createNamespace('ending')
  const held = { metadata: { namespace: 'ending', name: 'held', finalizers: ['example.com/hold'] } }
  const inEnding = await client.create(configMaps, held)
  await controlPlane.kubectl(['delete', 'namespace', 'ending', '--wait=false'])
  const isRefused = async () => {
    const probe = client.create(configMaps, { metadata: { namespace: 'ending', generateName: 'x-' } })
    return await probe.then(
      () => false,
      () => true,
    )
  }
  await waitUntil('the refusal of new content', isRefused, { withinMs: 20_000 })
  codes.length = 0
  recorder.record(inEnding, 'Normal', 'Tested', 'too late')
  await recorder.flush()
  t.same(codes, ['403'])
  t.same(logged, [])
  await client.patch(
    configMaps,
    { namespace: 'ending', name: 'held' },
    { metadata: { finalizers: null } },
    { type: 'merge' },
  )
})
