import type { V1NodeSpec, V1NodeStatus } from '@kubernetes/client-node'
import type { Logger } from 'pino'
import type { KubeClient } from '../src/kube/client.ts'
import { isKubeError } from '../src/kube/errors.ts'
import type { KubeObject, Resource } from '../src/kube/object.ts'
import { type Clock, systemClock } from '../src/runtime/clock.ts'
import type { Behaviour } from './behaviour.ts'
import { Kubelet } from './kubelet.ts'
import { createStorageClass, runProvisioner } from './volumes.ts'

type Node = KubeObject & { spec?: V1NodeSpec; status?: V1NodeStatus }

const nodes: Resource<Node> = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false }

export interface NodeOptions {
  /** An administrator's client. It is not closed with the nodes. */
  readonly client: KubeClient
  readonly log: Logger
  /** Default 2. */
  readonly count?: number
  /** For Pods without the annotation `simulated-kubelet/behaviour`; default: run at once. */
  readonly behaviour?: Behaviour
  readonly clock?: Clock
}

/** Simulated nodes with their kubelet and a volume provisioner. No Pod ever runs anything. */
export interface SimulatedNodes {
  readonly names: readonly string[]
  /** From now on this Pod, there already or not, behaves like this, whatever its annotation says. Ends with the Pod. */
  setBehaviour(namespace: string, name: string, behaviour: Partial<Behaviour>): void
  /** Makes a Pod fail: its containers exit with code 1. */
  failPod(namespace: string, name: string): void
  /** Ends the simulation; the Node objects stay. Idempotent. */
  stop(): Promise<void>
}

/**
 * Registers nodes that are ready and never renew anything, and plays kubelet for them: a Pod placed on one becomes
 * Running and Ready, with an address, in one write, and is gone right after its deletion. Volume claims of the default
 * StorageClass are bound. Resolves once Pods can be placed.
 */
export async function startNodes(options: NodeOptions): Promise<SimulatedNodes> {
  const { client, log, count = 2, behaviour, clock = systemClock } = options
  const hostIps = new Map(
    Array.from({ length: count }, (_, index) => [`simulated-${index + 1}`, `10.127.0.${index + 1}`]),
  )
  const stopping = new AbortController()
  const kubelet = new Kubelet({ client, clock, log, hostIps, ...(behaviour && { behaviour }) })

  await Promise.all([
    createStorageClass(client),
    ...[...hostIps].map(([name, address]) => register(client, nodeObject(name, address, clock.now()))),
  ])
  const running = Promise.all([kubelet.run(stopping.signal), runProvisioner({ client, clock, log }, stopping.signal)])
  await kubelet.synced

  return {
    names: [...hostIps.keys()],
    setBehaviour: (namespace, name, wanted) => kubelet.setBehaviour(namespace, name, wanted),
    failPod: (namespace, name) => kubelet.setBehaviour(namespace, name, { outcome: 'fail' }),
    async stop() {
      stopping.abort()
      await running
    },
  }
}

/** As a kubelet does: created with its status. */
async function register(client: KubeClient, node: Node): Promise<void> {
  try {
    await client.create(nodes, node)
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists')) throw error
  }
  // Admission taints every new node as not ready until the controller manager has looked at it. It may not be there.
  const ref = { name: node.metadata.name ?? '' }
  await client.patch(nodes, ref, { spec: { taints: null } }, { type: 'merge' })
}

function nodeObject(name: string, address: string, now: number): Node {
  // More than any test asks for: only the number of Pods is near what a node can have.
  const capacity = { cpu: '4k', memory: '64Ti', 'ephemeral-storage': '64Ti', pods: '20000' }
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const condition = (type: string, status: string, reason: string): object => ({
    type,
    status,
    reason,
    message: '',
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  })
  const status = {
    capacity,
    allocatable: capacity,
    addresses: [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: name },
    ],
    conditions: [
      condition('Ready', 'True', 'KubeletReady'),
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory'),
      condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure'),
      condition('PIDPressure', 'False', 'KubeletHasSufficientPID'),
    ],
    nodeInfo: {
      architecture: 'amd64',
      bootID: '',
      containerRuntimeVersion: 'simulated://1',
      kernelVersion: '',
      kubeProxyVersion: '',
      kubeletVersion: 'v0.0.0-simulated',
      machineID: name,
      operatingSystem: 'linux',
      osImage: 'simulated',
      systemUUID: name,
    },
  }
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels },
    spec: {},
    // The types of client-node have Date objects where the wire has text.
    status: status as unknown as V1NodeStatus,
  }
}
