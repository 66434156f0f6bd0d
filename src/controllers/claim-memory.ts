import { isDeepStrictEqual } from 'node:util'
import type { Sandbox, SandboxClaim, SandboxClaimStatus } from '../api/kinds.ts'
import { controllerOf } from '../kube/object.ts'
import { Answers } from '../runtime/answers.ts'

/** A write for one claim, as it was or will be sent. */
export type ClaimWrite =
  | { readonly kind: 'adopt'; readonly sandbox: Sandbox; readonly patch: Record<string, unknown> }
  | { readonly kind: 'create'; readonly sandbox: Sandbox }

/** A write whose outcome is unknown: repeated as it was until that is definite. */
export interface OpenWrite {
  readonly claimUid: string
  readonly write: ClaimWrite
  /** How often its reply has been lost. */
  readonly losses: number
}

/** How long an answer is believed that the cache does not show; after that a live read decides. */
const answerTrustMs = 10_000

/** What the claim controller knows from its own writes, ahead of its caches. Lost with the process, without harm. */
export class ClaimMemory {
  readonly claims = new Answers<SandboxClaim>()
  /** By the claim's key, which is worked on by one pass at a time. */
  readonly openWrites = new Map<string, OpenWrite>()
  readonly #sandboxes = new Answers<Sandbox>()
  /** Claims as they will be once the status that is being written has arrived, by UID. */
  readonly #inWriting = new Map<string, Pick<SandboxClaim, 'metadata' | 'status'>>()
  /** Sandbox UIDs by the UID of the claim that they were bound to or made for. */
  readonly #boundTo = new Map<string, string>()
  /** What was last said about a claim's violations, by claim UID. */
  readonly #told = new Map<string, string>()

  /** Sends a status, and keeps the claim that comes back ahead of the cache. */
  async write(
    claim: SandboxClaim,
    status: SandboxClaimStatus,
    send: () => Promise<SandboxClaim>,
    now: () => number,
  ): Promise<void> {
    const { metadata } = claim
    this.#inWriting.set(metadata.uid ?? '', { metadata, status })
    try {
      this.claims.remember(await send(), now())
    } finally {
      this.#inWriting.delete(metadata.uid ?? '')
    }
  }

  /** True for news that only repeats what we have written, which the watch may bring before the reply does. */
  isEcho(news: SandboxClaim): boolean {
    if (this.claims.isEcho(news)) return true
    const { metadata, status } = this.#inWriting.get(news.metadata.uid ?? '') ?? {}
    return (
      metadata !== undefined &&
      metadata.generation === news.metadata.generation &&
      metadata.deletionTimestamp === news.metadata.deletionTimestamp &&
      isDeepStrictEqual(status, news.status)
    )
  }

  /** Remembers the server's answer about a claim's sandbox. */
  remember(claimUid: string, sandbox: Sandbox, now: number): void {
    this.#sandboxes.remember(sandbox, now)
    if (sandbox.metadata.uid !== undefined) this.#boundTo.set(claimUid, sandbox.metadata.uid)
  }

  /**
   * The cached sandboxes of a claim, brought up to date with our answers, and the one that the cache does not show:
   * `unseen`, and doubtful when it should have been shown long ago.
   */
  owned(
    claimUid: string,
    cached: readonly Sandbox[],
    now: number,
  ): { sandboxes: Sandbox[]; unseen: Sandbox | undefined; isDoubtful: boolean } {
    let sandboxes = cached.map((sandbox) => this.#sandboxes.newest(sandbox))
    const uid = this.#boundTo.get(claimUid)
    const answer = uid === undefined ? undefined : this.#sandboxes.about(uid, now)
    const isShown = sandboxes.some((sandbox) => sandbox.metadata.uid === uid)
    if (answer === undefined || isShown) this.#boundTo.delete(claimUid)
    else {
      // What the cache still shows under its name is what was there before it.
      sandboxes = sandboxes.filter((sandbox) => sandbox.metadata.name !== answer.object.metadata.name)
      sandboxes.push(answer.object)
    }
    return {
      sandboxes: sandboxes.filter((sandbox) => controllerOf(sandbox)?.uid === claimUid),
      unseen: isShown ? undefined : answer?.object,
      isDoubtful: (answer?.ageMs ?? 0) > answerTrustMs,
    }
  }

  /** True when this was not the last thing said about the claim's violations. */
  isNews(claimUid: string, text: string): boolean {
    if ((this.#told.get(claimUid) ?? '') === text) return false
    this.#told.set(claimUid, text)
    return true
  }

  forgetSandbox(uid: string): void {
    this.#sandboxes.forget(uid)
  }

  forgetClaim(uid: string): void {
    this.claims.forget(uid)
    this.#sandboxes.forget(this.#boundTo.get(uid) ?? '')
    this.#boundTo.delete(uid)
    this.#told.delete(uid)
  }

  clear(): void {
    this.claims.clear()
    this.#sandboxes.clear()
    for (const map of [this.#boundTo, this.openWrites, this.#told]) map.clear()
  }
}
