import type { Sandbox, SandboxClaim } from '../api/kinds.ts'
import { controllerOf } from '../kube/object.ts'
import { Answers } from '../runtime/answers.ts'

/** A write whose reply was lost: repeated as it was until its outcome is definite. */
export type InFlight =
  | { readonly kind: 'adopt'; readonly sandbox: Sandbox; readonly patch: Record<string, unknown> }
  | { readonly kind: 'create'; readonly sandbox: Sandbox }

/** How long an answer is believed that the cache does not show; after that a live read decides. */
const answerTrustMs = 10_000

/** What the claim controller knows from its own writes, ahead of its caches. Lost with the process, without harm. */
export class ClaimMemory {
  readonly claims = new Answers<SandboxClaim>()
  readonly #sandboxes = new Answers<Sandbox>()
  /** Sandbox UIDs by the UID of the claim that they were bound to or made for. */
  readonly #boundTo = new Map<string, string>()
  /** By claim UID. */
  readonly inFlight = new Map<string, InFlight>()

  /** Remembers the server's answer about a claim's sandbox. */
  remember(claimUid: string, sandbox: Sandbox, now: number): void {
    this.#sandboxes.remember(sandbox, now)
    if (sandbox.metadata.uid !== undefined) this.#boundTo.set(claimUid, sandbox.metadata.uid)
  }

  /** The cached sandboxes of a claim, brought up to date with our answers, and one the cache does not show yet. */
  owned(claimUid: string, cached: readonly Sandbox[], now: number): Sandbox[] {
    const sandboxes = cached.map((sandbox) => this.#sandboxes.newest(sandbox))
    const uid = this.#boundTo.get(claimUid)
    if (uid === undefined) return sandboxes
    const answer = this.#sandboxes.about(uid, now)
    if (answer === undefined || sandboxes.some((sandbox) => sandbox.metadata.uid === uid)) {
      this.#boundTo.delete(claimUid)
    } else if (answer.ageMs > answerTrustMs) {
      this.#boundTo.delete(claimUid)
      this.#sandboxes.forget(uid)
    } else {
      sandboxes.push(answer.object)
    }
    return sandboxes.filter((sandbox) => controllerOf(sandbox)?.uid === claimUid)
  }

  forgetSandbox(uid: string): void {
    this.#sandboxes.forget(uid)
  }

  forgetClaim(uid: string): void {
    this.claims.forget(uid)
    this.#boundTo.delete(uid)
    this.inFlight.delete(uid)
  }
}
