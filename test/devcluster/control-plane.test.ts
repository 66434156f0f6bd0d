import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { startDevcluster } from '../../devcluster/devcluster.ts'
import { tally } from '../../devcluster/audit.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import { type Pod, pods, persistentVolumeClaims } from '../../src/api/core.ts'
import type { KubeObject, Resource } from '../../src/kube/object.ts'

// One cluster for the whole file, since its start is the expensive part.
t.setTimeout(120_000)
const namespace = 'devcluster-test'
const log = pino({ level: 'error' }, pino.destination(2))
const binaries = await findControlPlane((line) => t.comment(line))
const cluster = await startDevcluster({ binaries, log, audit: true })
const { controlPlane, client, nodes } = cluster
t.teardown(() => cluster.stop())
await controlPlane.createNamespace(namespace, { purpose: 'test' })

const configMaps: Resource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true }

function pod(name: string, behaviour?: string, spec: object = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, ...(behaviour && { annotations: { 'simulated-kubelet/behaviour': behaviour } }) },
    spec: { containers: [{ name: 'main', image: 'none' }], ...spec },
  }
}

const get = (name: string): Promise<Pod> => client.get(pods, { namespace, name })
const isReady = (object: Pod): boolean =>
  object.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
const podBecomes = (name: string, isSo: (object: Pod) => boolean): Promise<void> =>
  waitUntil(`Pod ${name}`, async () => isSo(await get(name)), { withinMs: 20_000 })
const isGone = async (resource: Resource, name: string): Promise<boolean> => {
  const ref = { fieldSelector: `metadata.name=${name}`, ...(resource.namespaced && { namespace }) }
  return (await client.list(resource, ref)).items.length === 0
}

t.test('the API server is ready, and the namespaces carry the label that newer servers set', async (t) => {
  t.strictSame(await controlPlane.kubectl(['get', '--raw', '/readyz']), { stdout: 'ok', stderr: '', code: 0 })
  const { stdout } = await controlPlane.kubectl(['get', 'namespaces', '-o', 'json'])
  const { items } = JSON.parse(stdout) as { items: KubeObject[] }
  t.strictSame(
    items.map(({ metadata }) => [metadata.name, metadata.labels?.['kubernetes.io/metadata.name']]),
    ['default', namespace, 'kube-node-lease', 'kube-public', 'kube-system'].map((name) => [name, name]),
  )
})

t.test('kubectl reads its input and tells its exit code', async (t) => {
  const manifest = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'given', namespace } })
  t.match(await controlPlane.kubectl(['apply', '-f', '-'], { input: manifest }), { code: 0, stdout: /created/ })
  t.match(await controlPlane.kubectl(['get', 'configmap', 'absent']), { code: 1, stderr: /NotFound/ })
})

t.test('the scheduler places a Pod and it becomes Running and Ready with an address of its own', async (t) => {
  await Promise.all(['first', 'second'].map((name) => client.create(pods, pod(name))))
  await Promise.all(['first', 'second'].map((name) => podBecomes(name, isReady)))
  const [first, second] = await Promise.all(['first', 'second'].map(get))
  t.ok(nodes.names.includes(first?.spec?.nodeName ?? ''), 'it is on a simulated node')
  t.match(first?.status, { phase: 'Running', podIP: /^10\.128\./, hostIP: /^10\.127\./ })
  t.match(first?.status?.containerStatuses, [{ name: 'main', ready: true, restartCount: 0 }])
  t.not(first?.status?.podIP, second?.status?.podIP)
  const writes = (await controlPlane.requestsOf('admin')).filter(({ resource }) => resource === 'pods/status')
  t.strictSame(writes.map(({ name = '' }) => name).toSorted(), ['first', 'second'], 'in one write each')
})

t.test('a deleted Pod is soon gone', async (t) => {
  await client.create(pods, pod('short-lived'))
  await podBecomes('short-lived', isReady)
  await client.delete(pods, { namespace, name: 'short-lived' })
  await t.resolves(waitUntil('the end', () => isGone(pods, 'short-lived'), { withinMs: 20_000 }))
})

t.test('a Pod with a finalizer is left to whoever set it', async (t) => {
  const held = pod('held')
  await client.create(pods, { ...held, metadata: { ...held.metadata, finalizers: ['example.com/hold'] } })
  await podBecomes('held', isReady)
  await client.delete(pods, { namespace, name: 'held' })
  await podBecomes(
    'held',
    ({ metadata }) => (metadata as { deletionGracePeriodSeconds?: number }).deletionGracePeriodSeconds === 0,
  )
  await client.patch(pods, { namespace, name: 'held' }, { metadata: { finalizers: null } }, { type: 'merge' })
  await t.resolves(waitUntil('the end', () => isGone(pods, 'held'), { withinMs: 20_000 }))
})

t.test('an annotation says how a Pod ends up', async (t) => {
  const expected: Record<string, (object: Pod) => boolean> = {
    fail: ({ status }) => status?.phase === 'Failed',
    succeed: ({ status }) => status?.phase === 'Succeeded',
    'not-ready': (object) => object.status?.phase === 'Running' && !isReady(object),
    'image-pull-error': ({ status }) =>
      status?.phase === 'Pending' && status.containerStatuses?.[0]?.state?.waiting?.reason === 'ImagePullBackOff',
    'crash-loop': ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff',
  }
  await Promise.all(Object.keys(expected).map((name) => client.create(pods, pod(`does-${name}`, name))))
  await t.resolves(Promise.all(Object.entries(expected).map(([name, isSo]) => podBecomes(`does-${name}`, isSo))))
})

t.test('a pending Pod stays so until the test lets it run, and fails when told to', async (t) => {
  await client.create(pods, pod('puppet', 'pending'))
  await podBecomes('puppet', ({ spec }) => spec?.nodeName !== undefined)
  // Placed later and ready: the kubelet has been past the puppet.
  await client.create(pods, pod('later'))
  await podBecomes('later', isReady)
  t.match((await get('puppet')).status, { phase: 'Pending', podIP: undefined })

  nodes.setBehaviour(namespace, 'puppet', { outcome: 'run' })
  await podBecomes('puppet', isReady)
  nodes.failPod(namespace, 'puppet')
  await t.resolves(podBecomes('puppet', ({ status }) => status?.phase === 'Failed'))
})

t.test('a delay keeps a Pod pending and a stop delay keeps it terminating', async (t) => {
  // An hour, so that however slow the machine is, it is the test that ends the delays.
  await Promise.all([
    client.create(pods, pod('slow', 'delay=3600000,stop-delay=3600000')),
    client.create(pods, pod('brief', 'delay=20,stop-delay=20')),
  ])
  await podBecomes('slow', ({ spec }) => spec?.nodeName !== undefined)
  await podBecomes('brief', isReady)
  t.match((await get('slow')).status, { phase: 'Pending' })
  nodes.setBehaviour(namespace, 'slow', { startAfterMs: 0, stopAfterMs: 3_600_000 })
  await podBecomes('slow', isReady)

  await Promise.all(['slow', 'brief'].map((name) => client.delete(pods, { namespace, name })))
  await waitUntil('the end', () => isGone(pods, 'brief'), { withinMs: 20_000 })
  t.type((await get('slow')).metadata.deletionTimestamp, 'string')
  nodes.setBehaviour(namespace, 'slow', { stopAfterMs: 0 })
  await t.resolves(waitUntil('the end', () => isGone(pods, 'slow'), { withinMs: 20_000 }))
})

t.test('what an owner leaves behind is collected', async (t) => {
  const owner = await client.create(configMaps, { metadata: { name: 'owner', namespace } })
  const { uid = '' } = owner.metadata
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid, controller: true }]
  await client.create(configMaps, { metadata: { name: 'owned', namespace, ownerReferences } })
  await client.delete(configMaps, { namespace, name: 'owner' })
  await t.resolves(waitUntil('the collection', () => isGone(configMaps, 'owned'), { withinMs: 30_000 }))
})

t.test('a volume claim is bound, a Pod with it is placed, and its volume goes with it', async (t) => {
  const accessModes = ['ReadWriteOnce' as const]
  const spec = { accessModes, resources: { requests: { storage: '1Gi' } } }
  await client.create(persistentVolumeClaims, { metadata: { name: 'data', namespace }, spec })
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  await client.create(pods, pod('with-volume', undefined, { volumes }))
  await podBecomes('with-volume', isReady)
  const claim = await client.get(persistentVolumeClaims, { namespace, name: 'data' })
  t.equal(claim.status?.phase, 'Bound')

  await client.delete(pods, { namespace, name: 'with-volume' })
  await client.delete(persistentVolumeClaims, { namespace, name: 'data' })
  const volumeName = claim.spec?.volumeName ?? ''
  const persistentVolumes = { ...configMaps, kind: 'PersistentVolume', plural: 'persistentvolumes', namespaced: false }
  await t.resolves(waitUntil('its end', () => isGone(persistentVolumes, volumeName), { withinMs: 20_000 }))
})

t.test('a service account has the rights that RBAC gives it, and its requests can be counted', async (t) => {
  const asAdmin = (...args: string[]) => controlPlane.kubectl(['--namespace', namespace, ...args])
  await asAdmin('create', 'serviceaccount', 'worker')
  await asAdmin('create', 'role', 'worker', '--verb=create,get', '--resource=configmaps')
  await asAdmin('create', 'rolebinding', 'worker', '--role=worker', `--serviceaccount=${namespace}:worker`)
  const kubeconfig = await controlPlane.serviceAccountKubeconfig(namespace, 'worker')
  const asWorker = (...args: string[]) => controlPlane.kubectl(['--namespace', namespace, ...args], { kubeconfig })
  const user = `system:serviceaccount:${namespace}:worker`

  t.match(await asWorker('create', 'configmap', 'made'), { code: 0 })
  t.match(await asWorker('create', 'configmap', 'made-too'), { code: 0 })
  t.match(await asWorker('delete', 'configmap', 'made'), { code: 1, stderr: /Forbidden/ })
  const requests = await controlPlane.requestsOf(user)
  t.strictSame(tally(requests), { 'create configmaps': 2, 'delete configmaps': 1 })
  t.strictSame(
    requests.map(({ code }) => code),
    [201, 201, 403],
  )
  t.strictSame(await controlPlane.requestsOf(user, Date.now() + 1000), [])
})

t.test('who may not update the finalizers of an owner may not set an owner that blocks its deletion', async (t) => {
  const owner = await client.create(configMaps, { metadata: { name: 'blocking', namespace } })
  const kubeconfig = await controlPlane.serviceAccountKubeconfig(namespace, 'worker')
  const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'blocking', uid: owner.metadata.uid }
  const input = JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'blocked', namespace, ownerReferences: [{ ...reference, blockOwnerDeletion: true }] },
  })
  t.match(await controlPlane.kubectl(['create', '-f', '-'], { kubeconfig, input }), {
    code: 1,
    stderr: /cannot set blockOwnerDeletion/,
  })
})

t.test('ephemeral containers are there to be judged', async (t) => {
  const path = `/api/v1/namespaces/${namespace}/pods/first/ephemeralcontainers`
  t.match(await controlPlane.kubectl(['get', '--raw', path]), { code: 0 })
})

t.test('the API server comes back on its port with what it knew, and the nodes go on', async (t) => {
  await controlPlane.apiServer.stop()
  await t.rejects(client.get(pods, { namespace, name: 'first' }), { code: 'Unreachable' })
  await controlPlane.apiServer.start()
  t.equal((await get('first')).metadata.name, 'first')
  await client.create(pods, pod('afterwards'))
  await podBecomes('afterwards', isReady)
  t.ok((await controlPlane.apiServer.cpuMs()) > 0)
  t.match(await controlPlane.apiServer.metrics(), /^apiserver_request_total\{/m)
})

t.test('a process that ends by itself is reported by name', async (t) => {
  const pid = await readFile(join(controlPlane.directory, 'running', 'kube-scheduler'), 'utf8')
  process.kill(Number(pid), 'SIGKILL')
  t.match(await controlPlane.failed, { code: 'ProcessEnded', message: /^kube-scheduler ended \(signal SIGKILL\)/ })
})
