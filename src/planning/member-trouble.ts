import type { Pod } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import { conditionTypes, sandboxReasons } from '../api/vocabulary.ts'
import { findCondition } from './conditions.ts'

/** What keeps a sandbox from becoming Ready, in the words of whoever says so. */
export interface Trouble {
  readonly reason: string
  readonly message: string
  /** The cluster has no place for the Pod, or someone holds it back: another one would fare no better. */
  readonly isWaitingForPlace: boolean
}

/** Reasons with which every container begins. */
const ordinaryWaits: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])
/** A kubelet alternates between the two: the first attempt's name and the wait's. One name keeps conditions still. */
const steadyNames: Readonly<Record<string, string>> = { ErrImagePull: 'ImagePullBackOff' }
/** What a Sandbox says while nothing is known but that it is not Ready. */
const ordinaryReasons: ReadonlySet<string> = new Set([
  sandboxReasons.dependenciesNotReady,
  sandboxReasons.dependenciesReady,
  sandboxReasons.suspended,
])

/** The trouble of a sandbox that is not Ready, or undefined when it is simply on its way. `pod` is its own Pod. */
export function memberTrouble(sandbox: Sandbox, pod: Pod | undefined): Trouble | undefined {
  return placementTrouble(sandbox, pod) ?? containerTrouble(pod) ?? sandboxTrouble(sandbox)
}

function placementTrouble(sandbox: Sandbox, pod: Pod | undefined): Trouble | undefined {
  const gates = pod?.spec?.schedulingGates?.map(({ name }) => name) ?? []
  if (gates.length > 0) {
    const message = `The Pod is held back by its scheduling gates: ${gates.join(', ')}.`
    return { reason: 'SchedulingGated', message, isWaitingForPlace: true }
  }
  const scheduled =
    pod?.status?.conditions?.find(({ type }) => type === 'PodScheduled') ??
    findCondition(sandbox.status?.conditions, conditionTypes.podScheduled)
  if (scheduled?.status !== 'False') return undefined
  const reason = scheduled.reason ?? 'Unschedulable'
  return { reason, message: scheduled.message ?? 'The Pod has no node.', isWaitingForPlace: true }
}

function containerTrouble(pod: Pod | undefined): Trouble | undefined {
  const statuses = [...(pod?.status?.initContainerStatuses ?? []), ...(pod?.status?.containerStatuses ?? [])]
  for (const { name, image, state } of statuses) {
    const reason = state?.waiting?.reason
    if (reason === undefined || ordinaryWaits.has(reason)) continue
    const steady = steadyNames[reason] ?? reason
    // Without the kubelet's message: it counts seconds, and a status that repeated it would be written each time.
    return { reason: steady, message: `Container ${name} (image ${image}): ${steady}.`, isWaitingForPlace: false }
  }
  return undefined
}

function sandboxTrouble(sandbox: Sandbox): Trouble | undefined {
  const ready = findCondition(sandbox.status?.conditions, conditionTypes.ready)
  if (ready?.status !== 'False' || ordinaryReasons.has(ready.reason)) return undefined
  return { reason: ready.reason, message: ready.message, isWaitingForPlace: false }
}
