import type { KubeObject } from '../kube/object.ts'

/**
 * The API server's answers to our own writes, kept until the cache shows them. A lagging watch then never makes a
 * controller act on a state that it has itself already changed.
 */
export class Answers<T extends KubeObject> {
  readonly #byUid = new Map<string, { readonly object: T; readonly at: number }>()

  get size(): number {
    return this.#byUid.size
  }

  /** `now` is in milliseconds. Of two answers about one object the newer stays, whichever came first. */
  remember(object: T, now: number): void {
    const uid = object.metadata.uid
    if (uid === undefined) return
    const known = this.#byUid.get(uid)
    if (known && versionOf(known.object) > versionOf(object)) return
    this.#byUid.set(uid, { object, at: now })
  }

  clear(): void {
    this.#byUid.clear()
  }

  forget(uid: string): void {
    this.#byUid.delete(uid)
  }

  /** The newer of the cached object and our answer about it; drops the answer once the cache has caught up. */
  newest(cached: T): T {
    const uid = cached.metadata.uid ?? ''
    const answer = this.#byUid.get(uid)
    if (answer === undefined) return cached
    if (versionOf(cached) >= versionOf(answer.object)) {
      this.#byUid.delete(uid)
      return cached
    }
    return answer.object
  }

  /** True for news that only repeats our answer: whoever wrote has acted on it already. The answer is then dropped. */
  isEcho(news: T): boolean {
    const uid = news.metadata.uid ?? ''
    if (this.#byUid.get(uid)?.object.metadata.resourceVersion !== news.metadata.resourceVersion) return false
    return this.#byUid.delete(uid)
  }

  /** The answer about `uid`, and how long ago it came, in milliseconds. */
  about(uid: string, now: number): { readonly object: T; readonly ageMs: number } | undefined {
    const answer = this.#byUid.get(uid)
    return answer && { object: answer.object, ageMs: now - answer.at }
  }
}

/** Resource versions of one API server grow; etcd's are integers within 2^53 for any cluster that exists. */
function versionOf(object: KubeObject): number {
  return Number(object.metadata.resourceVersion ?? 0)
}
