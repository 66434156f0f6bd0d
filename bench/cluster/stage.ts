import { fileURLToPath } from 'node:url'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { startControlPlane, type ControlPlane } from '../../devcluster/control-plane.ts'
import { describeEnd } from '../../devcluster/processes.ts'
import { installProduct, type Product } from '../../devcluster/product.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import type { KubeClient } from '../../src/kube/client.ts'
import { loadKubeConfig } from '../../src/kube/config.ts'
import type { Resource } from '../../src/kube/object.ts'
import { createKubeClient } from '../../src/kube/rest-client.ts'
import { createLogger } from '../../src/telemetry/logger.ts'
import type { BenchContext } from '../scenario.ts'

/** Everything that is measured is here; nobody else is, so nothing is cleaned up that a run did not make itself. */
export const namespace = 'default'

/** Where claims are measured: the product as its manifests install it, with a client beside it. */
export interface Stage {
  readonly controlPlane: ControlPlane
  readonly product: Product
  /** An administrator's client, with a connection for each request of the largest burst. */
  readonly client: KubeClient
  /** Ends with the stage, and with it whatever follows the API server. */
  readonly signal: AbortSignal
  stop(): Promise<void>
}

export interface StageOptions {
  /** Writes the audit log, which costs a write per request: for counting, not for timing. */
  readonly audit?: boolean
  /** Further flags of `sandgate serve`. */
  readonly flags?: readonly string[]
}

const nodesProgram = fileURLToPath(new URL('nodes.ts', import.meta.url))
const nodes: Resource = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false }
const connections = 300

export async function startStage({ say }: BenchContext, options: StageOptions = {}): Promise<Stage> {
  const { audit = false, flags = [] } = options
  const log = createLogger({ level: 'error' })
  const controlPlane = await startControlPlane({ binaries: await findControlPlane(say), log, audit })
  try {
    const client = createKubeClient(loadKubeConfig({ kubeconfig: controlPlane.kubeconfig }), {
      userAgent: 'bench',
      connections,
    })
    await startNodesBeside(controlPlane, client)
    const product = await installProduct({ controlPlane, flags: ['--log-level=warn', ...flags] })
    say('control plane, nodes and product are up')
    const stopping = new AbortController()
    return {
      controlPlane,
      product,
      client,
      signal: stopping.signal,
      async stop() {
        stopping.abort()
        // Before the rest, and gently: under `node --cpu-prof` it writes its profile as it ends.
        await product.process.stop()
        await client.close()
        await controlPlane.stop()
      },
    }
  } catch (error) {
    await controlPlane.stop()
    throw error
  }
}

async function startNodesBeside(controlPlane: ControlPlane, client: KubeClient): Promise<void> {
  const started = await controlPlane.startProcess('nodes', process.execPath, [nodesProgram, controlPlane.kubeconfig])
  const failed = started.ended.then((how) => describeEnd(started, how))
  const areThere = async () => (await client.list(nodes)).items.length > 0
  await waitUntil('the simulated nodes', areThere, { withinMs: 30_000, failed })
}
