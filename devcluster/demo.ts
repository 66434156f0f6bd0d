// `npm run demo`: the main job, end to end, on a control plane of its own. Ends 0 with a summary, or 1 at the first thing
// that did not happen.
import { createLogger } from '../src/telemetry/logger.ts'
import { findControlPlane } from './binaries.ts'
import { bindClaim, expiry, fillPool, refill, refusals, rollingUpdate, type Stage } from './demo/scenes.ts'
import { createScreen } from './demo/screen.ts'
import { startDevcluster } from './devcluster.ts'
import { installProduct } from './product.ts'

async function main(): Promise<void> {
  const screen = createScreen()
  const startedAt = Date.now()
  screen.step('A Kubernetes control plane of its own')
  const binaries = await findControlPlane((line) => screen.output(line))
  const starting = startDevcluster({ binaries, log: createLogger({ level: 'error' }) })
  const cluster = await screen.wait('etcd, API server, controller manager and scheduler are starting', starting)
  process.once('SIGINT', () => void cluster.stop().then(() => process.exit(130)))
  try {
    screen.result(
      `etcd, kube-apiserver, kube-controller-manager, kube-scheduler and ${cluster.nodes.names.length} simulated nodes`,
    )
    screen.step('sandgate, from its shipped manifests')
    const { controlPlane } = cluster
    const installing = installProduct({ controlPlane })
    await screen.wait('sandgate is being installed and started', installing)
    screen.result('its webhooks answer over TLS, and its controllers lead')

    const stage: Stage = { cluster, screen, summary: [] }
    for (const scene of [fillPool, bindClaim, refill, refusals, rollingUpdate, expiry]) {
      await scene(stage)
    }
    screen.step('Summary')
    for (const line of stage.summary) screen.result(line)
    screen.result(`the whole demo in ${Math.round((Date.now() - startedAt) / 1000)} s`)
  } finally {
    await cluster.stop()
  }
}

try {
  await main()
} catch (error) {
  process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
