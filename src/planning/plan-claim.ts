import type { Sandbox, SandboxClaim, SandboxClaimStatus, SandboxTemplate } from '../api/kinds.ts'
import { claimReasons, conditionTypes, labels } from '../api/vocabulary.ts'
import { controllerOf } from '../kube/object.ts'
import type { Finding, Known, Pool } from '../policy/rule.ts'
import { metadataSyncPatch } from './adoption.ts'
import { boundStatus, notReadyStatus } from './claim-status.ts'
import { findCondition } from './conditions.ts'
import { claimExpiry } from './expiry.ts'
import type { Stock } from './rank-candidates.ts'

/** What a plan may ask to be read live before it is acted on. */
export type Confirmation = 'named-sandbox' | 'pool-and-template' | 'sandbox-of-name'

/** All that a decision about one claim rests on. */
export interface ClaimView {
  readonly claim: SandboxClaim | undefined
  /** Sandboxes controlled by this claim's UID with a valid proof, our own latest answers included. */
  readonly owned: readonly Sandbox[]
  /** The Sandbox that the status names: found when it is among `owned`, missing only after a live read. */
  readonly named: Known<Sandbox>
  readonly pool: Known<Pool>
  readonly template: Known<SandboxTemplate>
  /** What enforced rules have against the claim, judged on `pool` and `template`. */
  readonly refusals: readonly Finding[]
  /** The pool member that an older controller assigned to this claim and did not hand over. */
  readonly marked: Sandbox | undefined
  readonly stock: Stock
  /** The Sandbox that bears the claim's name, when it is not among `owned`. */
  readonly ofName: Known<Sandbox>
  /** What was read live in this pass. */
  readonly confirmed: ReadonlySet<Confirmation>
  readonly rebindAfterLoss: boolean
}

/** What to do next. After a step that is not final, the claim is looked at again in the same pass. */
export type ClaimPlan =
  | { readonly kind: 'done' }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: string }
  | { readonly kind: 'confirm'; readonly what: Confirmation }
  /** Final unless `andGoOn`; `wakeInMs` is when to look again though nothing has changed. */
  | {
      readonly kind: 'publish'
      readonly status: SandboxClaimStatus
      readonly wakeInMs?: number
      readonly andGoOn?: true
      readonly event?: { readonly reason: string; readonly message: string }
    }
  | { readonly kind: 'delete-claim'; readonly propagation: 'Background' | 'Foreground' }
  | {
      readonly kind: 'delete-sandboxes'
      readonly sandboxes: readonly Sandbox[]
      readonly because: 'expired' | 'duplicate'
    }
  | { readonly kind: 'align'; readonly sandbox: Sandbox; readonly patch: Record<string, unknown> }
  | { readonly kind: 'adopt'; readonly sandbox: Sandbox; readonly template: SandboxTemplate }
  | { readonly kind: 'create'; readonly template: SandboxTemplate }

/** Younger claims may be ahead of our caches: their pool may just not have arrived yet. */
const certainAgeMs = 5_000
/** How long a young claim waits for stock that has no address yet, and how often it looks. */
const warmingPatienceMs = 2_000
const warmingRecheckMs = 500
/** Not Ready, and nothing but an event would change it: look again all the same. */
const unsettledRecheckMs = 30_000
const nameReleaseRecheckMs = 1_000

/**
 * The decision ladder of a claim. The first rung that holds decides; the numbers are those of the tests.
 *
 * 0. Gone or being deleted: forget it.
 * 1. Expired: say so in the status first, then delete what the policy says.
 * 2. Bound to a sandbox: keep it in line and publish it. To more than one: publish the winner, then let go of the rest.
 *    Its sandbox is gone: say so, and on to 3 unless the claim was over or must not be bound again.
 * 3. Pool or template missing: say so, once certain.
 * 4. Refused by policy: say so, once judged on live objects.
 * 5. Assigned by an older controller: finish that adoption.
 * 6. Own env or volumes: no warm sandbox has them, so 9.
 * 7. Warm: take the best candidate.
 * 8. Candidates that have no address yet: a young claim waits a moment for them.
 * 9. Cold: make a sandbox of the claim's name.
 */
export function planClaim(view: ClaimView, now: number): ClaimPlan {
  const { claim } = view
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return { kind: 'done' } // 0
  const expiry = claimExpiry(claim)
  if (expiry !== undefined && expiry <= now) return planExpired(claim, view, now) // 1
  const plan = planLiving(claim, view, now)
  return expiry === undefined ? plan : wakeBy(plan, expiry - now)
}

function planLiving(claim: SandboxClaim, view: ClaimView, now: number): ClaimPlan {
  if (view.owned.length > 0) return planBound(claim, view, now) // 2
  if (isOver(claim)) return { kind: 'done' }
  if (claim.status?.sandbox?.name !== undefined) return planLost(claim, view, now) // 2

  const ageMs = now - Date.parse(claim.metadata.creationTimestamp ?? '')
  const certain = view.confirmed.has('pool-and-template')
  const missing = missingReference(claim, view)
  if (missing || view.pool.kind !== 'found' || view.template.kind !== 'found') {
    // 3
    if (!certain && ageMs < certainAgeMs) {
      return { kind: 'wait', forMs: certainAgeMs - ageMs, because: 'its pool or template may be about to appear' }
    }
    if (!certain) return { kind: 'confirm', what: 'pool-and-template' }
    if (!missing) return { kind: 'wait', forMs: nameReleaseRecheckMs, because: 'pool or template could not be read' }
    return {
      kind: 'publish',
      status: notReadyStatus(claim, missing, now, { keepSandbox: false }),
      wakeInMs: 2 * unsettledRecheckMs,
    }
  }
  if (view.refusals.length > 0) {
    // 4
    if (!certain) return { kind: 'confirm', what: 'pool-and-template' }
    return { kind: 'publish', status: notReadyStatus(claim, refusal(view.refusals), now, { keepSandbox: false }) }
  }
  const template = view.template.value
  if (view.marked) return { kind: 'adopt', sandbox: view.marked, template } // 5
  const needsOwnBlueprint = (claim.spec.env?.length ?? 0) > 0 || (claim.spec.volumeClaimTemplates?.length ?? 0) > 0
  if (!needsOwnBlueprint) {
    // 6
    if (view.stock.kind === 'candidate') return { kind: 'adopt', sandbox: view.stock.sandbox, template } // 7
    if (view.stock.kind === 'warming' && ageMs < warmingPatienceMs) {
      return { kind: 'wait', forMs: warmingRecheckMs, because: 'its pool is about to have a sandbox with an address' } // 8
    }
  }
  return planCold(claim, view, template, now) // 9
}

function planExpired(claim: SandboxClaim, view: ClaimView, now: number): ClaimPlan {
  const ready = findCondition(claim.status?.conditions, conditionTypes.ready)
  if (ready?.reason !== claimReasons.claimExpired) {
    const message = 'The claim has reached the end of its lifecycle.'
    const expired = { reason: claimReasons.claimExpired, message }
    const status = notReadyStatus(claim, expired, now, { keepSandbox: true })
    return { kind: 'publish', status, andGoOn: true, event: expired }
  }
  const policy = claim.spec.lifecycle?.shutdownPolicy ?? 'Retain'
  switch (policy) {
    case 'Delete':
      return { kind: 'delete-claim', propagation: 'Background' }
    case 'DeleteForeground':
      return { kind: 'delete-claim', propagation: 'Foreground' }
    case 'Retain': {
      const living = view.owned.filter((sandbox) => sandbox.metadata.deletionTimestamp === undefined)
      if (living.length > 0) return { kind: 'delete-sandboxes', sandboxes: living, because: 'expired' }
      if (claim.status?.sandbox === undefined) return { kind: 'done' }
      if (view.owned.length > 0) return { kind: 'wait', forMs: nameReleaseRecheckMs, because: 'its sandbox is going' }
      if (view.named.kind !== 'missing') return confirmOnce(view, 'named-sandbox')
      return { kind: 'publish', status: notReadyStatus(claim, ready, now, { keepSandbox: false }) }
    }
    default:
      return policy satisfies never
  }
}

function planBound(claim: SandboxClaim, view: ClaimView, now: number): ClaimPlan {
  const named = claim.status?.sandbox?.name
  const winner = view.owned.find((sandbox) => sandbox.metadata.name === named) ?? oldest(view.owned)
  const isRenamed = named !== undefined && named !== winner.metadata.name
  if (isRenamed && view.named.kind !== 'missing') return confirmOnce(view, 'named-sandbox')

  const template = view.template.kind === 'found' ? view.template.value : undefined
  const status = boundStatus(claim, winner, now)
  const losers = view.owned.filter((sandbox) => sandbox !== winner && sandbox.metadata.deletionTimestamp === undefined)
  if (losers.length > 0) {
    // Whoever reads the status must never find a name that we are about to delete.
    if (named !== winner.metadata.name) return { kind: 'publish', status, andGoOn: true }
    return { kind: 'delete-sandboxes', sandboxes: losers, because: 'duplicate' }
  }
  const isGoing = winner.metadata.deletionTimestamp !== undefined
  const patch = isGoing ? undefined : metadataSyncPatch(claim, winner, template)
  if (patch) return { kind: 'align', sandbox: winner, patch }
  const isReady = findCondition(status.conditions, conditionTypes.ready)?.status === 'True'
  return { kind: 'publish', status, ...(!isReady && { wakeInMs: unsettledRecheckMs }) }
}

/** The status names a sandbox that the caches do not show as ours. */
function planLost(claim: SandboxClaim, view: ClaimView, now: number): ClaimPlan {
  if (view.named.kind !== 'missing') return confirmOnce(view, 'named-sandbox')
  const message = `Sandbox ${claim.status?.sandbox?.name} no longer exists.`
  const missing = { reason: claimReasons.sandboxMissing, message }
  const status = notReadyStatus(claim, missing, now, { keepSandbox: !view.rebindAfterLoss })
  return { kind: 'publish', status, ...(view.rebindAfterLoss && { andGoOn: true }) }
}

function planCold(claim: SandboxClaim, view: ClaimView, template: SandboxTemplate, now: number): ClaimPlan {
  if (view.ofName.kind === 'missing') return { kind: 'create', template }
  if (view.ofName.kind === 'unknown' || !view.confirmed.has('sandbox-of-name'))
    return confirmOnce(view, 'sandbox-of-name')
  const holder = view.ofName.value
  const isGoing = holder.metadata.deletionTimestamp !== undefined
  if (isGoing || isPredecessors(claim, holder)) {
    return { kind: 'wait', forMs: nameReleaseRecheckMs, because: 'a sandbox of its name is still going' }
  }
  const message =
    `A Sandbox named ${claim.metadata.name} exists and is not this claim's, and a cold start would need the name. ` +
    'Delete that Sandbox, or create the claim under another name.'
  const taken = { reason: claimReasons.sandboxNameTaken, message }
  const status = notReadyStatus(claim, taken, now, { keepSandbox: false })
  return { kind: 'publish', status, wakeInMs: unsettledRecheckMs }
}

/** Made for an earlier claim of the same name: it goes when the garbage collector gets to it. */
function isPredecessors(claim: SandboxClaim, sandbox: Sandbox): boolean {
  const owner = controllerOf(sandbox)
  return owner?.kind === 'SandboxClaim' && owner.name === claim.metadata.name && owner.uid !== claim.metadata.uid
}

/** Asks for a live read; one that was made and brought no certainty is made again later. */
function confirmOnce(view: ClaimView, what: Confirmation): ClaimPlan {
  return view.confirmed.has(what)
    ? { kind: 'wait', forMs: nameReleaseRecheckMs, because: 'a live read brought no certainty' }
    : { kind: 'confirm', what }
}

function missingReference(claim: SandboxClaim, view: ClaimView): { reason: string; message: string } | undefined {
  const { kind = 'SandboxWarmPool', name } = claim.spec.warmPoolRef
  if (view.pool.kind === 'missing') {
    const message = `${kind} ${name} does not exist in this namespace. Create it, or name another in spec.warmPoolRef.`
    return { reason: claimReasons.warmPoolNotFound, message }
  }
  if (view.template.kind === 'missing') {
    const message = `The SandboxTemplate that ${kind} ${name} refers to does not exist in this namespace.`
    return { reason: claimReasons.templateNotFound, message }
  }
  return undefined
}

function refusal(findings: readonly Finding[]): { reason: string; message: string } {
  const reason = findings[0]?.claimReason ?? claimReasons.invalidMetadata
  return { reason, message: findings.map((finding) => finding.message).join('\n') }
}

/** Its sandbox has run to its end: such a claim is never bound again. */
function isOver(claim: SandboxClaim): boolean {
  const ready = findCondition(claim.status?.conditions, conditionTypes.ready)
  const finished = findCondition(claim.status?.conditions, conditionTypes.finished)
  const overReasons: readonly string[] = [claimReasons.claimExpired, claimReasons.sandboxExpired]
  return finished?.status === 'True' || (ready !== undefined && overReasons.includes(ready.reason))
}

function oldest(sandboxes: readonly Sandbox[]): Sandbox {
  return sandboxes.reduce((first, next) => {
    const a = first.metadata
    const b = next.metadata
    const isOlder =
      (b.creationTimestamp ?? '') < (a.creationTimestamp ?? '') ||
      (b.creationTimestamp === a.creationTimestamp && (b.uid ?? '') < (a.uid ?? ''))
    return isOlder ? next : first
  })
}

/** A claim that will expire is looked at again exactly then. */
function wakeBy(plan: ClaimPlan, inMs: number): ClaimPlan {
  switch (plan.kind) {
    case 'publish':
      return { ...plan, wakeInMs: Math.min(plan.wakeInMs ?? Infinity, inMs) }
    case 'wait':
      return { ...plan, forMs: Math.min(plan.forMs, inMs) }
    case 'done':
      return { kind: 'wait', forMs: inMs, because: 'it expires then' }
    default:
      return plan
  }
}

export function launchTypeOf(sandbox: Sandbox): 'warm' | 'cold' {
  return sandbox.metadata.labels?.[labels.launchType] === 'cold' ? 'cold' : 'warm'
}
