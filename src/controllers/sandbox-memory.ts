import type { Pod } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import { annotations } from '../api/vocabulary.ts'
import { keyOf, type KubeObject } from '../kube/object.ts'
import type { Refusal } from '../planning/sandbox-view.ts'

/** How long an answer is believed that the cache does not show. After that a live read decides, never forgetting. */
const trustMs = 10_000

interface Answer {
  readonly object: KubeObject
  readonly at: number
  /** We asked for its deletion: the object is as it was before, and stands until the cache shows any change. */
  readonly isLeaving: boolean
}

/**
 * What this process knows about one Sandbox from its own requests, ahead of its caches. Lost with the process; what
 * that may cost is written at `isToBeReplaced` in the plan.
 */
export class SandboxNotes {
  readonly uid: string | undefined
  /** UID of the Pod that we created, from the server's reply. */
  ownPodUid: string | undefined
  /** Drawn for a POST of the Pod and kept until its outcome is known: the Pod that bears it is the one we asked for. */
  attempt: string | undefined
  refusal: (Refusal & { readonly count: number; readonly generation: number | undefined }) | undefined
  deferredSince: number | undefined
  readonly #answers = new Map<string, Answer>()

  constructor(uid: string | undefined) {
    this.uid = uid
  }

  /** The server's answer about an object, whether to a write or to a live read. */
  remember(slot: string, object: KubeObject, now: number): void {
    this.#answers.set(slot, { object, at: now, isLeaving: false })
  }

  /** Note this before the delete is sent: the watch may be faster than the reply. */
  expectDeletion(slot: string, object: KubeObject, now: number): void {
    const deletionTimestamp = object.metadata.deletionTimestamp ?? new Date(now).toISOString()
    const leaving = { ...object, metadata: { ...object.metadata, deletionTimestamp } }
    this.#answers.set(slot, { object: leaving, at: now, isLeaving: true })
  }

  /** The object is gone, or an answer about it turned out to be of no use. */
  forget(slot: string, uid?: string): void {
    if (uid === undefined || this.#answers.get(slot)?.object.metadata.uid === uid) this.#answers.delete(slot)
  }

  /** The newest that is known about what stands under `slot`; undefined also when it is doubtful. */
  recall<T extends KubeObject>(slot: string, cached: T | undefined, now: number): T | undefined {
    const answer = this.#answers.get(slot)
    if (!answer) return cached
    const isOld = now - answer.at >= trustMs
    if (!isOld && !(cached && isCaughtUp(cached, answer))) return answer.object as T
    if (cached) this.#answers.delete(slot)
    return cached
  }

  /** True when an answer of ours has stayed alone for so long that only the server can tell whether it still holds. */
  isDoubtful(slot: string, now: number, believedForMs = trustMs): boolean {
    const answer = this.#answers.get(slot)
    return answer !== undefined && now - answer.at >= believedForMs
  }

  /** Recognises the Pod of a POST whose reply was lost. */
  recognise(pod: Pod | undefined): void {
    if (pod === undefined || this.attempt === undefined) return
    if (pod.metadata.annotations?.[annotations.attempt] !== this.attempt) return
    this.ownPodUid = pod.metadata.uid
    this.attempt = undefined
  }
}

/** The notes about every Sandbox, by `namespace/name`. */
export class SandboxMemory {
  readonly #notes = new Map<string, SandboxNotes>()

  /** The notes about this Sandbox; blank when the name was another one's before. */
  about(sandbox: Sandbox): SandboxNotes {
    const known = this.#notes.get(keyOf(sandbox))
    if (known && known.uid === sandbox.metadata.uid) return known
    const notes = new SandboxNotes(sandbox.metadata.uid)
    this.#notes.set(keyOf(sandbox), notes)
    return notes
  }

  at(key: string): SandboxNotes | undefined {
    return this.#notes.get(key)
  }

  forget(key: string): void {
    this.#notes.delete(key)
  }
}

/** Names one object among those of a Sandbox. */
export function slotOf(kind: string, name: string): string {
  return `${kind}/${name}`
}

/** An answer and the cache may agree; only a deletion that we asked for must show as a change. */
function isCaughtUp(cached: KubeObject, { object, isLeaving }: Answer): boolean {
  return isLeaving ? versionOf(cached) > versionOf(object) : versionOf(cached) >= versionOf(object)
}

/** Resource versions of one API server grow; etcd's are integers within 2^53 for any cluster that exists. */
function versionOf(object: KubeObject): number {
  return Number(object.metadata.resourceVersion ?? 0)
}
