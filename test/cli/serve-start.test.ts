import t from 'tap'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { startControlPlane } from '../../devcluster/control-plane.ts'
import { createLogger } from '../../src/telemetry/logger.ts'
import { sandgate, startSandgate, takenPort } from './sandgate.ts'

t.test('serve on a cluster that is not prepared', async (t) => {
  const binaries = await findControlPlane(() => undefined)
  const controlPlane = await startControlPlane({ binaries, log: createLogger({ level: 'error' }) })
  t.teardown(() => controlPlane.stop())
  const serve = [
    'serve',
    `--kubeconfig=${controlPlane.kubeconfig}`,
    '--namespace=sandgate-system',
    '--http-port=0',
    '--drain-seconds=0',
  ]

  await t.test('status says how to install sandgate', async (t) => {
    const { code, stderr } = await sandgate(['status', `--kubeconfig=${controlPlane.kubeconfig}`])
    t.equal(code, 1)
    t.match(stderr, /^sandgate: the cluster does not know all kinds of sandgate\. Install .*sandgate manifests.*\n$/)
  })

  await t.test('certs says that no webhook is registered', async (t) => {
    const { code, stdout } = await sandgate(['certs', `--kubeconfig=${controlPlane.kubeconfig}`])
    t.equal(code, 1)
    t.match(stdout, /No webhook is registered/)
    t.match(stdout, /There is no Secret/)
  })

  await t.test('it names the missing definitions, and goes on when they are installed', async (t) => {
    await controlPlane.createNamespace('sandgate-system')
    const running = startSandgate(t, [...serve, '--port=0'])
    const waiting = await running.sees('stderr', /waiting for CustomResourceDefinitions: .*\n/)
    for (const name of ['sandboxes.agents.x-k8s.io', 'sandboxclaims.extensions.agents.x-k8s.io']) {
      t.match(waiting, name)
    }
    t.match(waiting, 'kubectl apply -k manifests/crds')
    const { code, stderr } = await controlPlane.kubectl(['apply', '-k', 'manifests/crds'])
    t.equal(code, 0, stderr)
    await running.sees('stderr', /"msg":"ready"/)
    t.equal(await running.stop(), 0)
    t.match(running.output('stderr'), /"msg":"stopping"/)
  })

  await t.test('it ends when the port of the webhooks is in use', async (t) => {
    const port = await takenPort(t)
    const running = startSandgate(t, [...serve, `--port=${port}`])
    t.equal(await running.ended, 1)
    const last = running.output('stderr').trim().split('\n').at(-1) ?? ''
    t.match(last, new RegExp(`^sandgate: cannot listen on port ${port}: another process uses it`))
  })
})
