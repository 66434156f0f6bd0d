import type { Sandbox, SandboxClaim, SandboxTemplate } from '../api/kinds.ts'
import { claimReasons, conditionTypes } from '../api/vocabulary.ts'
import { metadataSyncPatch } from './adoption.ts'
import { isOver, isPredecessors, isStaying, oldest } from './claim-ownership.ts'
import { boundStatus, lostStatus, notReadyStatus, type NotReady } from './claim-status.ts'
import { givingUp, missingReference, nameTaken, refusal } from './claim-troubles.ts'
import { needsOwnBlueprint, type ClaimPlan, type ClaimView, type PublishPlan } from './claim-view.ts'
import { findCondition } from './conditions.ts'
import { claimExpiry } from './expiry.ts'
import type { Pool } from './pools.ts'

/** Younger claims may be ahead of our caches: their pool may just not have arrived yet. */
const certainAgeMs = 5_000
/** How long a young claim waits for stock that has no address yet, and how often it looks. */
const warmingPatienceMs = 2_000
const warmingRecheckMs = 500
/** So many lost races in one pass mean that the caches are behind; they get a moment to catch up. */
const mostLostRaces = 5
const contentionRecheckMs = 1_000
/** Nothing but an event would change it: look again all the same. */
const unsettledRecheckMs = 30_000
const nameReleaseRecheckMs = 1_000
/** Quota is freed by others at any moment, and nothing tells us. */
const quotaRecheckMs = 10_000

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
 * 7. Warm: take the best candidate. Too many races lost: say so, and look again.
 * 8. Candidates that have no address yet: a young claim waits a moment for them.
 * 9. Cold: make a sandbox of the claim's name.
 *
 * `now` is in milliseconds since the epoch, by the API server's clock. A claim that will expire is looked at exactly then.
 */
export function planClaim(view: ClaimView, now: number): ClaimPlan {
  const { claim } = view
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return { kind: 'done' } // 0
  if (view.unseen && view.isDoubtful) return { kind: 'confirm', what: 'own-sandbox', sandbox: view.unseen }
  const expiry = claimExpiry(claim)
  if (expiry !== undefined && expiry <= now) return planExpired(claim, view, now) // 1
  return wokenByExpiry(planLiving(claim, view, now), claim, now)
}

function planLiving(claim: SandboxClaim, view: ClaimView, now: number): ClaimPlan {
  if (view.owned.length > 0) return planBound(claim, view, now) // 2
  if (isOver(claim)) return planOver(claim, view, now)
  if (claim.status?.sandbox?.name !== undefined) return planLost(claim, view, now)

  const ageMs = now - Date.parse(claim.metadata.creationTimestamp ?? '')
  const isConfirmed = view.confirmed.has('pool-and-template')
  const missing = missingReference(claim, view)
  if (missing || view.pool.kind !== 'found' || view.template.kind !== 'found') {
    // 3
    if (ageMs < certainAgeMs) {
      return { kind: 'wait', forMs: certainAgeMs - ageMs, because: 'its pool or template may be about to appear' }
    }
    if (!missing || !isConfirmed) return confirmOnce(view, 'pool-and-template')
    return notReady(claim, missing, now, 2 * unsettledRecheckMs)
  }
  if (view.refusals.length > 0) {
    // 4
    const refused = refusal(view.refusals)
    if (refused.reason === claimReasons.quotaExceeded) return notReady(claim, refused, now, quotaRecheckMs)
    return isConfirmed ? notReady(claim, refused, now) : { kind: 'confirm', what: 'pool-and-template' }
  }
  const template = view.template.value
  if (view.marked) return planAdoption(claim, view.marked, template, view, now) // 5
  if (!needsOwnBlueprint(claim)) {
    // 6
    if (view.stock.kind === 'candidate') return planAdoption(claim, view.stock.sandbox, template, view, now) // 7
    if (view.stock.kind === 'warming' && ageMs < warmingPatienceMs) {
      const because = 'its pool is about to have a sandbox with an address'
      return { kind: 'wait', forMs: warmingRecheckMs, because, awaitsStock: true } // 8
    }
  }
  const plan = planCold(claim, view, view.pool.value, template, now) // 9
  const isHeldUp = plan.kind === 'wait' || plan.kind === 'publish'
  return isHeldUp && !needsOwnBlueprint(claim) ? { ...plan, awaitsStock: true } : plan
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
      const living = view.owned.filter(isStaying)
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
  const staying = view.owned.filter(isStaying)
  const winner =
    view.owned.find((sandbox) => sandbox.metadata.name === named) ?? oldest(staying.length > 0 ? staying : view.owned)
  const isRenamed = named !== undefined && named !== winner.metadata.name
  if (isRenamed && view.named.kind !== 'missing') return confirmOnce(view, 'named-sandbox')

  const status = boundStatus(claim, winner, now)
  const ready = findCondition(status.conditions, conditionTypes.ready)
  const isGivingUp = givingUp.has(ready?.reason ?? '') && !view.confirmed.has('own-sandbox')
  if (isGivingUp && findCondition(claim.status?.conditions, conditionTypes.ready)?.reason !== ready?.reason) {
    return { kind: 'confirm', what: 'own-sandbox', sandbox: winner }
  }
  if (isStaying(winner)) {
    const losers = staying.filter((sandbox) => sandbox !== winner)
    if (losers.length > 0) {
      // Whoever reads the status must never find a name that we are about to delete.
      if (named !== winner.metadata.name) return { kind: 'publish', status, andGoOn: true }
      return { kind: 'delete-sandboxes', sandboxes: losers, because: 'duplicate' }
    }
    // What the rules would not let in must not reach the Pod of a claim that was edited while the webhook was off.
    const isAllowed = view.refusals.every((finding) => finding.claimReason !== claimReasons.invalidMetadata)
    const template = view.template.kind === 'found' ? view.template.value : undefined
    const patch = isAllowed ? metadataSyncPatch(claim, winner, template) : undefined
    if (patch) return { kind: 'align', sandbox: winner, patch }
  }
  const isSettled = ready?.status === 'True' && !view.unseen
  return { kind: 'publish', status, violations: view.refusals, ...(!isSettled && { wakeInMs: unsettledRecheckMs }) }
}

/** The claim had its sandbox and is not bound again. What it still says about that sandbox must be true. */
function planOver(claim: SandboxClaim, view: ClaimView, now: number): ClaimPlan {
  const status = lostStatus(claim, now)
  if (status === undefined) return { kind: 'done' }
  return view.named.kind === 'missing' ? { kind: 'publish', status } : confirmOnce(view, 'named-sandbox')
}

/** The status names a sandbox that the caches do not show as ours. */
function planLost(claim: SandboxClaim, view: ClaimView, now: number): ClaimPlan {
  if (view.named.kind !== 'missing') return confirmOnce(view, 'named-sandbox')
  const message = `Sandbox ${claim.status?.sandbox?.name} no longer exists.`
  const missing = { reason: claimReasons.sandboxMissing, message }
  const status = notReadyStatus(claim, missing, now, { keepSandbox: !view.rebindAfterLoss })
  return { kind: 'publish', status, ...(view.rebindAfterLoss && { andGoOn: true }) }
}

function planAdoption(
  claim: SandboxClaim,
  sandbox: Sandbox,
  template: SandboxTemplate,
  view: ClaimView,
  now: number,
): ClaimPlan {
  if (view.lostRaces < mostLostRaces) return { kind: 'adopt', sandbox, template }
  const message = `Sandbox ${sandbox.metadata.name} and those before it changed just before they could be taken; trying again.`
  return notReady(claim, { reason: claimReasons.adoptionConflict, message }, now, contentionRecheckMs)
}

function planCold(claim: SandboxClaim, view: ClaimView, pool: Pool, template: SandboxTemplate, now: number): ClaimPlan {
  if (view.exceededQuota !== undefined) {
    const exceeded = { reason: claimReasons.quotaExceeded, message: view.exceededQuota }
    return notReady(claim, exceeded, now, quotaRecheckMs)
  }
  if (view.templateRefusal !== undefined) {
    const message = `No sandbox is made from a template that breaks a rule. ${view.templateRefusal}`
    return notReady(claim, { reason: claimReasons.reconcilerError, message }, now, 2 * unsettledRecheckMs)
  }
  if (view.ofName.kind === 'missing') {
    if (!view.ofSameHash) return { kind: 'create', pool, template }
    return notReady(claim, nameTaken(claim, view.ofSameHash.metadata.name), now, unsettledRecheckMs)
  }
  if (view.ofName.kind === 'unknown' || !view.confirmed.has('sandbox-of-name'))
    return confirmOnce(view, 'sandbox-of-name')
  const holder = view.ofName.value
  if (!isStaying(holder) || isPredecessors(claim, holder)) {
    return { kind: 'wait', forMs: nameReleaseRecheckMs, because: 'a sandbox of its name is still going' }
  }
  return notReady(claim, nameTaken(claim, holder.metadata.name), now, unsettledRecheckMs)
}

/** Without `wakeInMs` the reason lasts until something is changed by hand, which wakes the claim. */
function notReady(claim: SandboxClaim, because: NotReady, now: number, wakeInMs?: number): PublishPlan {
  const status = notReadyStatus(claim, because, now, { keepSandbox: false })
  return { kind: 'publish', status, ...(wakeInMs !== undefined && { wakeInMs }) }
}

/** Asks for a live read; one that was made and brought no certainty is made again later. */
function confirmOnce(view: ClaimView, what: 'named-sandbox' | 'pool-and-template' | 'sandbox-of-name'): ClaimPlan {
  return view.confirmed.has(what)
    ? { kind: 'wait', forMs: nameReleaseRecheckMs, because: 'a live read brought no certainty' }
    : { kind: 'confirm', what }
}

/** With the time of expiry that holds once the plan's status is written: Finished may be new in it. */
function wokenByExpiry(plan: ClaimPlan, claim: SandboxClaim, now: number): ClaimPlan {
  const expiry = claimExpiry(plan.kind === 'publish' ? { ...claim, status: plan.status } : claim)
  if (expiry === undefined) return plan
  const inMs = Math.max(0, expiry - now)
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
