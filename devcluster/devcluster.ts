import type { KubeClient } from '../src/kube/client.ts'
import { loadKubeConfig } from '../src/kube/config.ts'
import { createKubeClient } from '../src/kube/rest-client.ts'
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts'
import { type SimulatedNodes, startNodes } from './nodes.ts'
import type { Behaviour } from './behaviour.ts'

export interface DevclusterOptions extends ControlPlaneOptions {
  /** Default 2. */
  readonly nodeCount?: number
  /** For Pods without the annotation `simulated-kubelet/behaviour`; default: run at once. */
  readonly behaviour?: Behaviour
}

/** A control plane with simulated nodes. */
export interface Devcluster {
  readonly controlPlane: ControlPlane
  readonly nodes: SimulatedNodes
  /** An administrator's client. */
  readonly client: KubeClient
  /** Ends and removes everything. Idempotent. */
  stop(): Promise<void>
}

/** Starts both and resolves once Pods can be created and placed: about five seconds on two cores. */
export async function startDevcluster(options: DevclusterOptions): Promise<Devcluster> {
  const { log, nodeCount, behaviour } = options
  const controlPlane = await startControlPlane(options)
  const client = createKubeClient(loadKubeConfig({ kubeconfig: controlPlane.kubeconfig }), { userAgent: 'devcluster' })
  try {
    const nodes = await startNodes({
      client,
      log,
      ...(nodeCount !== undefined && { count: nodeCount }),
      ...(behaviour && { behaviour }),
    })
    return {
      controlPlane,
      nodes,
      client,
      async stop() {
        await nodes.stop()
        await client.close()
        await controlPlane.stop()
      },
    }
  } catch (error) {
    await client.close()
    await controlPlane.stop()
    throw error
  }
}
