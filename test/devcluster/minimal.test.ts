import { pino } from 'pino'
import t from 'tap'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { startControlPlane } from '../../devcluster/control-plane.ts'
import { startNodes } from '../../devcluster/nodes.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import { pods } from '../../src/api/core.ts'
import { loadKubeConfig } from '../../src/kube/config.ts'
import { createKubeClient } from '../../src/kube/rest-client.ts'

t.setTimeout(120_000)
const log = pino({ level: 'error' }, pino.destination(2))
const { etcd, apiServer, minorVersion, origin } = await findControlPlane((line) => t.comment(line))

t.test('etcd and an API server alone are enough for Pods that are placed by hand', async (t) => {
  const controlPlane = await startControlPlane({ binaries: { etcd, apiServer, minorVersion, origin }, log })
  t.teardown(() => controlPlane.stop())
  const client = createKubeClient(loadKubeConfig({ kubeconfig: controlPlane.kubeconfig }))
  t.teardown(() => client.close())
  const nodes = await startNodes({ client, log, count: 1 })
  t.teardown(() => nodes.stop())

  await controlPlane.createNamespace('hand-made')
  const ref = { namespace: 'hand-made', name: 'placed' }
  const spec = { nodeName: 'simulated-1', containers: [{ name: 'main', image: 'none' }] }
  await client.create(pods, { metadata: ref, spec })
  const isRunning = async (): Promise<boolean> => (await client.get(pods, ref)).status?.phase === 'Running'
  await t.resolves(waitUntil('the Pod', isRunning, { withinMs: 20_000 }))

  await t.rejects(controlPlane.kubectl(['version']), { code: 'MissingBinary', message: /no kubectl beside etcd/ })
  await t.rejects(controlPlane.requestsOf('admin'), { message: /audit: true/ })
  await t.rejects(controlPlane.serviceAccountKubeconfig('hand-made', 'nobody'), {
    code: 'RequestFailed',
    message: /serviceaccounts\/nobody\/token: 404/,
  })
  // Twice, as happens when a test fails half-way.
  await Promise.all([controlPlane.stop(), controlPlane.stop()])
})
