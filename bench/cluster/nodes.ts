// The simulated nodes, in a process of their own: what they do while a pool fills must not delay the clock of the
// client that measures. Takes a kubeconfig file.
import process from 'node:process'
import { startNodes } from '../../devcluster/nodes.ts'
import { loadKubeConfig } from '../../src/kube/config.ts'
import { createKubeClient } from '../../src/kube/rest-client.ts'
import { createLogger } from '../../src/telemetry/logger.ts'

const [kubeconfig = ''] = process.argv.slice(2)
const client = createKubeClient(loadKubeConfig({ kubeconfig }), { userAgent: 'devcluster' })
await startNodes({ client, log: createLogger({ level: 'error' }) })
