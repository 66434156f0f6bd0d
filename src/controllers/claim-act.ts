import { sandboxClaimKind, sandboxKind, type Sandbox, type SandboxClaim, type SandboxTemplate } from '../api/kinds.ts'
import { claimReasons, labels } from '../api/vocabulary.ts'
import { isKubeError } from '../kube/errors.ts'
import { adoptionPatch, claimAnnotations, claimOwner } from '../planning/adoption.ts'
import { buildSandboxFromTemplate } from '../planning/blueprint.ts'
import { claimStatusPatch, notReadyStatus } from '../planning/claim-status.ts'
import { injectEnv, mergeVolumeClaimTemplates } from '../planning/injection.ts'
import { signBound, withOrigin } from '../planning/origin.ts'
import type { ClaimPlan, ClaimView } from '../planning/plan-claim.ts'
import type { Outcome } from '../runtime/controller.ts'
import { confirm, isOurs, type ClaimSources, type LiveReads } from './claim-gather.ts'
import type { InFlight } from './claim-memory.ts'
import { exceededQuota } from './quota.ts'

/** A finished pass, or `go-on`: the claim is planned again at once, on what this step has changed. */
export type Step = Outcome | 'go-on'

const done: Outcome = { kind: 'done' }
const lostRace: Outcome = { kind: 'recheck', afterMs: 20, because: 'somebody else changed it first' }
const outcomeUnknown: Outcome = { kind: 'recheck', afterMs: 100, because: 'the reply to a write was lost' }
const quotaRecheckMs = 10_000

/** Carries out one step of a claim's plan. */
export async function act(plan: ClaimPlan, view: ClaimView, live: LiveReads, sources: ClaimSources): Promise<Step> {
  const { claim } = view
  if (claim === undefined) return done
  const { deps } = sources
  switch (plan.kind) {
    case 'done':
      return done
    case 'wait':
      return { kind: 'recheck', afterMs: plan.forMs, because: plan.because }
    case 'confirm':
      await confirm(plan.what, claim, live, sources)
      return 'go-on'
    case 'publish':
      return publish(plan, claim, sources)
    case 'delete-claim':
      return deleteClaim(claim, plan.propagation, sources)
    case 'delete-sandboxes':
      return deleteSandboxes(plan, claim, sources)
    case 'align':
      return align(plan, claim, sources)
    case 'adopt': {
      const proof = signBound(deps.originKeys().current, {
        sandboxUid: plan.sandbox.metadata.uid ?? '',
        claimUid: claim.metadata.uid ?? '',
      })
      const patch = adoptionPatch(claim, plan.sandbox, plan.template, proof)
      return adopt({ kind: 'adopt', sandbox: plan.sandbox, patch }, claim, sources)
    }
    case 'create':
      return create({ kind: 'create', sandbox: coldSandbox(claim, plan.template, sources) }, claim, live, sources)
    default:
      return plan satisfies never
  }
}

/** Repeats a write whose reply was lost, before anything else is decided about the claim. */
export function repeat(write: InFlight, claim: SandboxClaim, live: LiveReads, sources: ClaimSources): Promise<Step> {
  sources.memory.inFlight.delete(claim.metadata.uid ?? '')
  return write.kind === 'adopt' ? adopt(write, claim, sources) : create(write, claim, live, sources)
}

export async function publish(
  plan: Extract<ClaimPlan, { kind: 'publish' }>,
  claim: SandboxClaim,
  { deps, memory }: ClaimSources,
): Promise<Step> {
  const patch = claimStatusPatch(claim, plan.status)
  if (patch) {
    const ref = { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name ?? '' }
    try {
      const answer = await deps.client.patch(sandboxClaimKind, ref, patch, { type: 'merge', subresource: 'status' })
      memory.claims.remember(answer, deps.clock.now())
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return done
      if (isKubeError(error, 'Conflict', 'OutcomeUnknown')) {
        memory.claims.remember(await deps.client.get(sandboxClaimKind, ref), deps.clock.now())
        return 'go-on'
      }
      throw error
    }
    if (plan.event) deps.events.record(claim, 'Normal', plan.event.reason, plan.event.message)
  }
  if (plan.andGoOn) return 'go-on'
  return plan.wakeInMs === undefined ? done : { kind: 'recheck', afterMs: plan.wakeInMs, because: 'it is not settled' }
}

/** The preconditions are those of the expiry mark: a claim that was extended since lives on. */
async function deleteClaim(
  claim: SandboxClaim,
  propagation: 'Background' | 'Foreground',
  { deps }: ClaimSources,
): Promise<Step> {
  const { namespace = '', name = '' } = claim.metadata
  return settled(deps.client.delete(sandboxClaimKind, { namespace, name }, { ...preconditions(claim), propagation }))
}

async function deleteSandboxes(
  plan: Extract<ClaimPlan, { kind: 'delete-sandboxes' }>,
  claim: SandboxClaim,
  { deps }: ClaimSources,
): Promise<Step> {
  const outcomes = await Promise.all(
    plan.sandboxes.map((sandbox) => {
      const { namespace = '', name = '' } = sandbox.metadata
      return settled(deps.client.delete(sandboxKind, { namespace, name }, preconditions(sandbox)))
    }),
  )
  if (plan.because === 'duplicate') {
    const names = plan.sandboxes.map((sandbox) => sandbox.metadata.name).join(', ')
    deps.events.record(
      claim,
      'Warning',
      'DuplicateSandboxReleased',
      `Let go of ${names}: the claim has another sandbox.`,
    )
  }
  return (
    outcomes.find((outcome) => outcome !== done) ?? { kind: 'recheck', afterMs: 1_000, because: 'its sandbox is going' }
  )
}

async function align(
  plan: Extract<ClaimPlan, { kind: 'align' }>,
  claim: SandboxClaim,
  { deps, memory }: ClaimSources,
): Promise<Step> {
  const { namespace = '', name = '' } = plan.sandbox.metadata
  try {
    const answer = await deps.client.patch(sandboxKind, { namespace, name }, plan.patch, { type: 'merge' })
    memory.remember(claim.metadata.uid ?? '', answer, deps.clock.now())
    return 'go-on'
  } catch (error) {
    if (isKubeError(error, 'Conflict', 'NotFound')) return lostRace
    throw error
  }
}

/**
 * The one write that binds. Lost races are settled by a live read: ours, so it is done; someone else's or gone, so the
 * next candidate; still the pool's, so the same again on the version that was read.
 */
async function adopt(
  write: Extract<InFlight, { kind: 'adopt' }>,
  claim: SandboxClaim,
  { deps, candidates, memory }: ClaimSources,
): Promise<Step> {
  const { sandbox, patch } = write
  const claimUid = claim.metadata.uid ?? ''
  const { namespace = '', name = '' } = sandbox.metadata
  // Chosen and taken with no await between: no other claim can have been offered it.
  candidates.take(sandbox)
  try {
    const answer = await deps.client.patch(sandboxKind, { namespace, name }, patch, { type: 'merge' })
    memory.remember(claimUid, answer, deps.clock.now())
    candidates.adopted(answer)
    return 'go-on'
  } catch (error) {
    if (isKubeError(error, 'OutcomeUnknown', 'ServerError')) {
      memory.inFlight.set(claimUid, write)
      return outcomeUnknown
    }
    if (!isKubeError(error, 'Conflict', 'NotFound')) {
      candidates.giveBack(sandbox)
      throw error
    }
  }
  const current = await deps.client.get(sandboxKind, { namespace, name }).catch((error: unknown) => {
    if (isKubeError(error, 'NotFound')) return undefined
    memory.inFlight.set(claimUid, write)
    throw error
  })
  if (current && isOurs(current, claim, deps)) {
    memory.remember(claimUid, current, deps.clock.now())
    candidates.adopted(current)
  } else if (current?.metadata.uid === sandbox.metadata.uid && current?.metadata.labels?.[labels.warmPool]) {
    candidates.refresh(current)
  } else {
    candidates.drop(sandbox, current)
  }
  return 'go-on'
}

async function create(
  write: Extract<InFlight, { kind: 'create' }>,
  claim: SandboxClaim,
  live: LiveReads,
  sources: ClaimSources,
): Promise<Step> {
  const { deps, memory } = sources
  const claimUid = claim.metadata.uid ?? ''
  try {
    const answer = await deps.client.create(sandboxKind, write.sandbox)
    memory.remember(claimUid, answer, deps.clock.now())
    return 'go-on'
  } catch (error) {
    if (isKubeError(error, 'OutcomeUnknown', 'ServerError')) {
      memory.inFlight.set(claimUid, write)
      return outcomeUnknown
    }
    if (isKubeError(error, 'AlreadyExists')) {
      await confirm('sandbox-of-name', claim, live, sources)
      return 'go-on'
    }
    const quota = exceededQuota(error)
    if (quota === undefined) throw error
    const status = notReadyStatus(claim, { reason: claimReasons.quotaExceeded, message: quota }, deps.clock.now(), {
      keepSandbox: false,
    })
    return publish({ kind: 'publish', status, wakeInMs: quotaRecheckMs }, claim, sources)
  }
}

/** A sandbox of the claim's name, with what the claim adds to its template. */
function coldSandbox(claim: SandboxClaim, template: SandboxTemplate, { deps }: ClaimSources): Sandbox {
  const { namespace = '', name = '', uid = '' } = claim.metadata
  const createdBy = claim.metadata.labels?.[labels.createdBy]
  const ownLabels = { [labels.claimUid]: uid, ...(createdBy !== undefined && { [labels.createdBy]: createdBy }) }
  const { env = [], volumeClaimTemplates = [], additionalPodMetadata } = claim.spec
  const { podTemplate } = template.spec
  const injected: SandboxTemplate = {
    ...template,
    spec: {
      ...template.spec,
      podTemplate: {
        metadata: {
          labels: { ...podTemplate.metadata?.labels, ...additionalPodMetadata?.labels },
          annotations: { ...podTemplate.metadata?.annotations, ...additionalPodMetadata?.annotations },
        },
        spec: injectEnv(podTemplate.spec, env),
      },
      volumeClaimTemplates: mergeVolumeClaimTemplates(template.spec.volumeClaimTemplates ?? [], volumeClaimTemplates),
    },
  }
  const sandbox = buildSandboxFromTemplate(injected, {
    name,
    namespace,
    owner: claimOwner(claim),
    launchType: 'cold',
    labels: ownLabels,
    podLabels: ownLabels,
    annotations: claimAnnotations(claim),
    config: deps.config(),
  })
  return withOrigin(deps.originKeys().current, sandbox, uid)
}

function preconditions({ metadata }: SandboxClaim | Sandbox) {
  return {
    ...(metadata.uid !== undefined && { uid: metadata.uid }),
    ...(metadata.resourceVersion !== undefined && { resourceVersion: metadata.resourceVersion }),
  }
}

/** A delete that found the object gone has reached its end; one that found it changed is looked at again. */
async function settled(deletion: Promise<void>): Promise<Outcome> {
  try {
    await deletion
    return done
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return done
    if (isKubeError(error, 'Conflict')) return lostRace
    throw error
  }
}
