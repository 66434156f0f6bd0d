import type { Sandbox, SandboxClaim, SandboxClaimStatus, SandboxTemplate } from '../api/kinds.ts'
import type { Finding, Known, Pool } from '../policy/rule.ts'
import type { Stock } from './rank-candidates.ts'

/** What a plan may ask to be read live before it is acted on. */
export type Confirmation = 'own-sandbox' | 'named-sandbox' | 'pool-and-template' | 'sandbox-of-name'

/** All that a decision about one claim rests on. */
export interface ClaimView {
  readonly claim: SandboxClaim | undefined
  /** Sandboxes controlled by this claim's UID with a valid proof, our own latest answers included. */
  readonly owned: readonly Sandbox[]
  /** One of `owned` that we know only from an answer to a write of ours: the cache does not show it yet, or no more. */
  readonly unseen: Sandbox | undefined
  /** The cache has not shown `unseen` for so long that it must be asked for. */
  readonly isDoubtful: boolean
  /** The Sandbox that the status names: found when it is among `owned`, missing only after a live read. */
  readonly named: Known<Sandbox>
  readonly pool: Known<Pool>
  readonly template: Known<SandboxTemplate>
  /** What enforced rules have against the claim, judged on `pool` and `template`. */
  readonly refusals: readonly Finding[]
  /** What enforced rules have against making a sandbox from the template. */
  readonly templateRefusal: string | undefined
  /** The pool member that an older controller assigned to this claim and did not hand over. */
  readonly marked: Sandbox | undefined
  readonly stock: Stock
  /** How often in this pass a sandbox that was to be adopted turned out to have changed. */
  readonly lostRaces: number
  /** The Sandbox that bears the claim's name, when it is not among `owned`. */
  readonly ofName: Known<Sandbox>
  /** Another Sandbox of the namespace whose name has the same hash as the claim's. */
  readonly ofSameHash: Sandbox | undefined
  /** What the API server said when, in this pass, it refused the cold start for want of quota. */
  readonly exceededQuota: string | undefined
  /** What was read live in this pass. */
  readonly confirmed: ReadonlySet<Confirmation>
  readonly rebindAfterLoss: boolean
}

/** What to do next. After a step that is not final, the claim is looked at again in the same pass. */
export type ClaimPlan =
  | { readonly kind: 'done' }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: string; readonly awaitsStock?: true }
  | { readonly kind: 'confirm'; readonly what: Exclude<Confirmation, 'own-sandbox'> }
  | { readonly kind: 'confirm'; readonly what: 'own-sandbox'; readonly sandbox: Sandbox }
  | PublishPlan
  | { readonly kind: 'delete-claim'; readonly propagation: 'Background' | 'Foreground' }
  | {
      readonly kind: 'delete-sandboxes'
      readonly sandboxes: readonly Sandbox[]
      readonly because: 'expired' | 'duplicate'
    }
  | { readonly kind: 'align'; readonly sandbox: Sandbox; readonly patch: Record<string, unknown> }
  | { readonly kind: 'adopt'; readonly sandbox: Sandbox; readonly template: SandboxTemplate }
  | { readonly kind: 'create'; readonly pool: Pool; readonly template: SandboxTemplate }

/** Final unless `andGoOn`; `wakeInMs` is when to look again though nothing has changed. */
export interface PublishPlan {
  readonly kind: 'publish'
  readonly status: SandboxClaimStatus
  readonly wakeInMs?: number
  readonly andGoOn?: true
  /** As in a wait: a sandbox that its pool comes to have would change it. */
  readonly awaitsStock?: true
  /** Told once the status is written. */
  readonly event?: { readonly reason: string; readonly message: string }
  /** What a policy that became stricter has against a claim that stays bound all the same. */
  readonly violations?: readonly Finding[]
}

/** Whether no warm sandbox can serve the claim, since none has its variables and volumes. */
export function needsOwnBlueprint({ spec }: SandboxClaim): boolean {
  return (spec.env?.length ?? 0) > 0 || (spec.volumeClaimTemplates?.length ?? 0) > 0
}
