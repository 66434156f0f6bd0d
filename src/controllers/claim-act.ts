import { sandboxClaimKind, sandboxKind, type Sandbox, type SandboxClaim } from '../api/kinds.ts'
import { isKubeError } from '../kube/errors.ts'
import { claimStatusPatch } from '../planning/claim-status.ts'
import type { ClaimPlan, ClaimView, PublishPlan } from '../planning/claim-view.ts'
import type { Finding } from '../policy/rule.ts'
import { adopt, adoptionOf } from './claim-adopt.ts'
import { coldStartOf, create } from './claim-create.ts'
import type { ClaimSources } from './claim-gather.ts'
import { confirm, readIfThere, type LiveReads } from './claim-live-reads.ts'
import type { ClaimWrite } from './claim-memory.ts'
import type { Step } from './open-writes.ts'

const goneRecheckMs = 1_000

/** Carries out one step of a claim's plan. Contention that the next pass settles is thrown as the Conflict it is. */
export async function act(plan: ClaimPlan, view: ClaimView, live: LiveReads, sources: ClaimSources): Promise<Step> {
  const { claim } = view
  if (claim === undefined) return { kind: 'done' }
  switch (plan.kind) {
    case 'done':
      return { kind: 'done' }
    case 'wait':
      return { kind: 'recheck', afterMs: plan.forMs, because: plan.because }
    case 'confirm':
      await confirm(plan, claim, live, sources)
      return 'go-on'
    case 'publish':
      return publish(plan, claim, sources)
    case 'delete-claim':
      return deleteClaim(claim, plan.propagation, sources)
    case 'delete-sandboxes':
      return deleteSandboxes(plan, claim, sources)
    case 'align':
      return align(plan, claim, sources)
    case 'adopt':
      return adopt(adoptionOf(claim, plan.sandbox, plan.template, sources), claim, live, sources)
    case 'create':
      return create(coldStartOf(claim, plan, sources), claim, live, sources)
    default:
      return plan satisfies never
  }
}

/** Sends a write whose outcome is open once more, as it was. */
export function repeat(write: ClaimWrite, claim: SandboxClaim, live: LiveReads, sources: ClaimSources): Promise<Step> {
  return write.kind === 'adopt' ? adopt(write, claim, live, sources) : create(write, claim, live, sources)
}

/** Writes the status when it differs. Somebody else's change, or a lost reply, means to plan again on what is stored. */
export async function publish(plan: PublishPlan, claim: SandboxClaim, { deps, memory }: ClaimSources): Promise<Step> {
  const patch = claimStatusPatch(claim, plan.status)
  if (patch) {
    const ref = { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name ?? '' }
    try {
      const send = () => deps.client.patch(sandboxClaimKind, ref, patch, { type: 'merge', subresource: 'status' })
      await memory.write(claim, plan.status, send, () => deps.clock.now())
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return { kind: 'done' }
      if (!isKubeError(error, 'Conflict', 'OutcomeUnknown')) throw error
      const current = await readIfThere(deps.client, sandboxClaimKind, ref)
      // Another one under its name is a claim that the cache has yet to show.
      if (current?.metadata.uid !== claim.metadata.uid) return { kind: 'done' }
      if (current) memory.claims.remember(current, deps.clock.now())
      return 'go-on'
    }
    if (plan.event) deps.events.record(claim, 'Normal', plan.event.reason, plan.event.message)
  }
  if (plan.violations) reportViolations(plan.violations, claim, { deps, memory })
  if (plan.andGoOn) return 'go-on'
  if (plan.wakeInMs === undefined) return { kind: 'done' }
  return { kind: 'recheck', afterMs: plan.wakeInMs, because: 'it is not settled, or falls due' }
}

/** A policy that became stricter unbinds nobody, but its author learns who breaks it: once for each set of violations. */
function reportViolations(
  violations: readonly Finding[],
  claim: SandboxClaim,
  { deps, memory }: Pick<ClaimSources, 'deps' | 'memory'>,
): void {
  const message = violations.map((finding) => finding.message).join('\n')
  if (!memory.isNews(claim.metadata.uid ?? '', message) || violations.length === 0) return
  deps.events.record(
    claim,
    'Warning',
    'PolicyViolated',
    `The claim keeps its sandbox, but would be refused: ${message}`,
  )
  for (const { rule } of violations) {
    deps.metrics.admissionRefusals.inc({ rule, mode: 'audit', namespace: claim.metadata.namespace ?? '' })
  }
}

/** The preconditions are those of the expiry mark: a claim that was extended since lives on. */
async function deleteClaim(
  claim: SandboxClaim,
  propagation: 'Background' | 'Foreground',
  { deps }: ClaimSources,
): Promise<Step> {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = claim.metadata
  const options = { uid, resourceVersion, propagation }
  await unlessGone(deps.client.delete(sandboxClaimKind, { namespace, name }, options))
  return { kind: 'done' }
}

async function deleteSandboxes(
  plan: Extract<ClaimPlan, { kind: 'delete-sandboxes' }>,
  claim: SandboxClaim,
  { deps, memory }: ClaimSources,
): Promise<Step> {
  const released: Sandbox[] = []
  const deletions = plan.sandboxes.map(async (sandbox) => {
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = sandbox.metadata
    const wasThere = await unlessGone(deps.client.delete(sandboxKind, { namespace, name }, { uid, resourceVersion }))
    if (wasThere) released.push(sandbox)
    else memory.forgetSandbox(uid)
  })
  const failure = (await Promise.allSettled(deletions)).find((result) => result.status === 'rejected')
  if (plan.because === 'duplicate' && released.length > 0) {
    const names = released.map((sandbox) => sandbox.metadata.name).join(', ')
    const message = `Let go of ${names}: the claim has another sandbox.`
    deps.events.record(claim, 'Warning', 'DuplicateSandboxReleased', message)
  }
  if (failure) throw failure.reason
  return { kind: 'recheck', afterMs: goneRecheckMs, because: 'a sandbox of it is going' }
}

async function align(
  plan: Extract<ClaimPlan, { kind: 'align' }>,
  claim: SandboxClaim,
  { deps, memory }: ClaimSources,
): Promise<Step> {
  const { namespace = '', name = '', uid = '' } = plan.sandbox.metadata
  try {
    const answer = await deps.client.patch(sandboxKind, { namespace, name }, plan.patch, { type: 'merge' })
    memory.remember(claim.metadata.uid ?? '', answer, deps.clock.now())
    return 'go-on'
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error
    memory.forgetSandbox(uid)
    return { kind: 'recheck', afterMs: goneRecheckMs, because: 'its sandbox has gone' }
  }
}

/** Whether there was something to delete. */
async function unlessGone(deletion: Promise<void>): Promise<boolean> {
  try {
    await deletion
    return true
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return false
    throw error
  }
}
