import type { V1ContainerStatus } from '@kubernetes/client-node'
import type { Pod } from '../api/core.ts'
import { nameOf } from './sandbox-identity.ts'

/** What a Pod amounts to, for the Sandbox that runs in it. */
export type PodState =
  | { readonly kind: 'ready' }
  | { readonly kind: 'notReady'; readonly because: string }
  | { readonly kind: 'succeeded'; readonly because: string }
  | { readonly kind: 'failed'; readonly because: string }

/** Judges a Pod by its own status; a Pod that is being deleted is not ready, whatever else it says. */
export function podState(pod: Pod): PodState {
  const name = nameOf(pod)
  const phase = pod.status?.phase ?? 'Pending'
  if (phase === 'Succeeded') return { kind: 'succeeded', because: `Pod ${name} has completed.` }
  if (phase === 'Failed') return { kind: 'failed', because: `Pod ${name} has failed${detailOfFailure(pod)}.` }
  if (pod.metadata.deletionTimestamp !== undefined) return notReady(`Pod ${name} is being deleted`)
  const obstacle = obstacleOf(pod)
  if (phase !== 'Running') return notReady(`Pod ${name} is ${phase}`, obstacle)
  if (conditionOf(pod, 'Ready')?.status !== 'True') return notReady(`Pod ${name} is not ready`, obstacle)
  if (podIPs(pod).length === 0) return notReady(`Pod ${name} has no IP address yet`)
  return { kind: 'ready' }
}

/** Every address of the Pod, primary first. */
export function podIPs(pod: Pod): string[] {
  const all = pod.status?.podIPs?.flatMap(({ ip }) => (ip ? [ip] : [])) ?? []
  if (all.length > 0) return all
  return pod.status?.podIP ? [pod.status.podIP] : []
}

/** The Pod's own word on whether a node was found for it. */
export function podScheduled(pod: Pod) {
  return conditionOf(pod, 'PodScheduled')
}

function notReady(fact: string, obstacle?: string): PodState {
  return { kind: 'notReady', because: obstacle ? `${fact}: ${obstacle}.` : `${fact}.` }
}

/** The nearest known reason why the Pod is not ready. */
function obstacleOf(pod: Pod): string | undefined {
  const scheduled = podScheduled(pod)
  if (scheduled?.status === 'False') return [scheduled.reason, scheduled.message].filter(Boolean).join(', ')
  const containers = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
  return containers.map(obstacleOfContainer).find((obstacle) => obstacle !== undefined)
}

/**
 * The container's own reason. Its message is left out: it counts seconds of back-off, and a status that repeated it
 * would be written again each time.
 */
function obstacleOfContainer({ name, image, state, ready }: V1ContainerStatus): string | undefined {
  if (state?.waiting)
    return `container ${name} (image ${image}) is waiting, ${state.waiting.reason ?? 'reason unknown'}`
  if (state?.terminated && state.terminated.exitCode !== 0) {
    return `container ${name} ended with exit code ${state.terminated.exitCode}, ${state.terminated.reason ?? 'Error'}`
  }
  if (state?.running && !ready) return `container ${name} is running but not ready`
  return undefined
}

function detailOfFailure(pod: Pod): string {
  const detail = pod.status?.reason ?? pod.status?.containerStatuses?.map(obstacleOfContainer).find(Boolean)
  return detail === undefined ? '' : `: ${detail}`
}

function conditionOf(pod: Pod, type: string) {
  return pod.status?.conditions?.find((condition) => condition.type === type)
}
