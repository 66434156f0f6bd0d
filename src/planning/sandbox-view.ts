import type { PersistentVolumeClaim, Pod, Service } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { isOurs, nameOf } from './sandbox-identity.ts'

/** All that a decision about one Sandbox rests on, our own latest writes included. */
export interface SandboxView {
  readonly sandbox: Sandbox
  /** Pods that this Sandbox controls, and whichever Pod holds its name. */
  readonly pods: readonly Pod[]
  /** Whichever Service holds its name. */
  readonly service: Service | undefined
  /** Whichever volume claims hold the names it needs, by name. */
  readonly volumeClaims: ReadonlyMap<string, PersistentVolumeClaim>
  /** UID of the Pod that this process created, from the server's reply. */
  readonly ownPodUid: string | undefined
  /** The server's last definite refusal to create something for this Sandbox. */
  readonly refusal: Refusal | undefined
  /** Since when something that may wait has been held back; milliseconds since the epoch, like every time here. */
  readonly deferredSince: number | undefined
  /** Claims are waiting to be bound, and every write of ours is one in front of theirs. */
  readonly claimsAreWaiting: boolean
  readonly config: PolicyConfig
}

export interface Refusal {
  /** For the Ready condition. */
  readonly reason: string
  readonly message: string
  readonly retryAt: number
}

/** What may wait waits no longer than this, in milliseconds. */
export const longestDeferralMs = 1_000

/** True when what was held back has to go now. */
export function isOverdue({ deferredSince }: SandboxView, now: number): boolean {
  return deferredSince !== undefined && now - deferredSince >= longestDeferralMs
}

/** Every Pod that the Sandbox controls. */
export function ownPods({ pods, sandbox }: SandboxView): readonly Pod[] {
  return pods.filter((pod) => isOurs(pod, sandbox))
}

/** The Pod that the status speaks of: of the Sandbox's own name, or one taken along from another implementation. */
export function chiefPod(view: SandboxView): Pod | undefined {
  const own = ownPods(view)
  const hasName = (pod: Pod) => nameOf(pod) === nameOf(view.sandbox)
  return living(own).find(hasName) ?? living(own)[0] ?? own.find(hasName) ?? own[0]
}

/** The Service of the Sandbox's name, when the Sandbox controls it. */
export function ownService({ service, sandbox }: SandboxView): Service | undefined {
  return service && isOurs(service, sandbox) ? service : undefined
}

/** Those that are not being deleted. */
export function living(pods: readonly Pod[]): Pod[] {
  return pods.filter((pod) => pod.metadata.deletionTimestamp === undefined)
}

/** The Pod's UID when we know that we created it, in this life or, by the status, in an earlier one. */
export function provenPodUid(pod: Pod, { sandbox, ownPodUid }: SandboxView): string | undefined {
  const { uid } = pod.metadata
  return uid === ownPodUid || uid === sandbox.status?.podUID ? uid : undefined
}
