import type { V1Container, V1ContainerStatus } from '@kubernetes/client-node'
import type { Pod, PodStatus } from '../src/api/core.ts'
import type { PodOutcome } from './behaviour.ts'

export interface StatusFacts {
  readonly podIp: string
  readonly hostIp: string
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** A container's state on the wire, where times are text. */
type ContainerState =
  | { running: { startedAt: string } }
  | { waiting: { reason: string; message: string } }
  | { terminated: { exitCode: number; reason: string; startedAt: string; finishedAt: string } }

interface Shape {
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed'
  /** Absent when the Pod is ready. */
  readonly notReady?: { readonly reason: string; readonly message: string }
  readonly state: (time: string) => ContainerState
  readonly restartCount: number
}

const terminated =
  (exitCode: number, reason: string) =>
  (time: string): ContainerState => ({ terminated: { exitCode, reason, startedAt: time, finishedAt: time } })
const running = (time: string): ContainerState => ({ running: { startedAt: time } })
const waiting = (reason: string, message: string) => (): ContainerState => ({ waiting: { reason, message } })

/** Reasons and states as the real kubelet words them. */
const shapes: Record<Exclude<PodOutcome, 'pending'>, Shape> = {
  run: { phase: 'Running', state: running, restartCount: 0 },
  'not-ready': {
    phase: 'Running',
    notReady: { reason: 'ContainersNotReady', message: 'containers with unready status' },
    state: running,
    restartCount: 0,
  },
  fail: {
    phase: 'Failed',
    notReady: { reason: 'PodFailed', message: 'a container exited with code 1' },
    state: terminated(1, 'Error'),
    restartCount: 0,
  },
  succeed: {
    phase: 'Succeeded',
    notReady: { reason: 'PodCompleted', message: '' },
    state: terminated(0, 'Completed'),
    restartCount: 0,
  },
  'image-pull-error': {
    phase: 'Pending',
    notReady: { reason: 'ContainersNotReady', message: 'containers with unready status' },
    state: waiting('ImagePullBackOff', 'Back-off pulling image'),
    restartCount: 0,
  },
  'crash-loop': {
    phase: 'Running',
    notReady: { reason: 'ContainersNotReady', message: 'containers with unready status' },
    state: waiting('CrashLoopBackOff', 'back-off 40s restarting failed container'),
    restartCount: 3,
  },
}

/** The whole status that a kubelet would report in the end, in one piece: a merge patch of `pods/status`. */
export function statusOf(pod: Pod, outcome: Exclude<PodOutcome, 'pending'>, facts: StatusFacts): PodStatus {
  const shape = shapes[outcome]
  const time = new Date(facts.now).toISOString().replace(/\.\d+Z$/, 'Z')
  const ready = { status: shape.notReady ? 'False' : 'True', ...shape.notReady, lastTransitionTime: time }
  const pulled = outcome !== 'image-pull-error'
  // A merge patch replaces the list: keep what the scheduler said.
  const others = (pod.status?.conditions ?? []).filter(
    ({ type }) => !['Initialized', 'Ready', 'ContainersReady'].includes(type),
  )
  return {
    phase: shape.phase,
    conditions: [
      { type: 'Initialized', status: 'True', lastTransitionTime: time },
      { type: 'Ready', ...ready },
      { type: 'ContainersReady', ...ready },
      ...others,
    ],
    hostIP: facts.hostIp,
    ...(pulled && { podIP: facts.podIp, podIPs: [{ ip: facts.podIp }] }),
    startTime: pod.status?.startTime ?? time,
    initContainerStatuses: (pod.spec?.initContainers ?? []).map((container) =>
      containerStatus(container, terminated(0, 'Completed')(time), true, 0),
    ),
    containerStatuses: (pod.spec?.containers ?? []).map((container) =>
      containerStatus(container, shape.state(time), !shape.notReady, shape.restartCount),
    ),
  }
}

function containerStatus(
  { name, image = '' }: V1Container,
  state: ContainerState,
  ready: boolean,
  restartCount: number,
): V1ContainerStatus {
  return {
    name,
    image,
    imageID: '',
    containerID: 'waiting' in state ? '' : `simulated://${name}`,
    ready,
    started: 'running' in state,
    restartCount,
    // The type of client-node has Date objects where the wire has text.
    state: state as unknown as NonNullable<V1ContainerStatus['state']>,
  }
}
