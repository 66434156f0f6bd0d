import { sandboxKind, type Sandbox, type SandboxClaim } from '../api/kinds.ts'
import { annotations } from '../api/vocabulary.ts'
import { isKubeError } from '../kube/errors.ts'
import { controllerOf, keyOf } from '../kube/object.ts'
import { isOurs } from '../planning/claim-ownership.ts'
import type { ClaimPlan } from '../planning/claim-view.ts'
import { coldSandbox } from '../planning/cold-sandbox.ts'
import { withOrigin } from '../planning/origin.ts'
import type { ClaimSources } from './claim-gather.ts'
import { confirm, type LiveReads } from './claim-live-reads.ts'
import type { ClaimWrite } from './claim-memory.ts'
import { keepOpen, saysNothingOfEarlier, type Step } from './open-writes.ts'
import { exceededQuota } from './quota.ts'

type ColdStart = Extract<ClaimWrite, { kind: 'create' }>

const endingRecheckMs = 30_000

/** The write that starts a sandbox for the claim, signed. */
export function coldStartOf(
  claim: SandboxClaim,
  { pool, template }: Extract<ClaimPlan, { kind: 'create' }>,
  { deps }: ClaimSources,
): ColdStart {
  const sandbox = coldSandbox(claim, pool, template, deps.config())
  return { kind: 'create', sandbox: withOrigin(deps.originKeys().current, sandbox, claim.metadata.uid ?? '') }
}

/** Starts a sandbox of the claim's name. When there is one already, or may be, a live read tells whose it is. */
export async function create(
  write: ColdStart,
  claim: SandboxClaim,
  live: LiveReads,
  sources: ClaimSources,
): Promise<Step> {
  const { deps, memory } = sources
  const isRepeated = memory.openWrites.has(keyOf(claim))
  try {
    await started(await deps.client.create(sandboxKind, write.sandbox), write, claim, sources)
    return 'go-on'
  } catch (error) {
    if (isKubeError(error, 'OutcomeUnknown')) return keepOpen(write, claim, sources)
    if (isRepeated && saysNothingOfEarlier(error)) throw error
    // Also when quota is said to be used up: an earlier attempt whose reply was lost may be what used it.
    if (isRepeated || isKubeError(error, 'AlreadyExists')) {
      await confirm({ kind: 'confirm', what: 'sandbox-of-name' }, claim, live, sources)
      const holder = live.ofName?.kind === 'found' ? live.ofName.value : undefined
      if (holder && (isOurs(holder, claim, deps.originKeys()) || (isRepeated && isSignedLike(holder, write, claim)))) {
        await started(holder, write, claim, sources)
        return 'go-on'
      }
      memory.openWrites.delete(keyOf(claim))
      if (isKubeError(error, 'AlreadyExists')) return 'go-on'
    }
    return refused(error, live)
  }
}

function refused(error: unknown, live: LiveReads): Step {
  const isNamespaceEnding =
    isKubeError(error, 'Forbidden') && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
  // Not found is the namespace: it has just gone.
  if (isNamespaceEnding || isKubeError(error, 'NotFound')) {
    return { kind: 'recheck', afterMs: endingRecheckMs, because: 'its namespace is being deleted' }
  }
  const quota = exceededQuota(error)
  if (quota === undefined) throw error
  live.exceededQuota = quota
  return 'go-on'
}

/**
 * The sandbox is there. When another webhook changed its blueprint on the way in, the proof is made for what was stored;
 * until that is written the start stays open, since without a proof nobody would know it as the claim's.
 */
async function started(
  stored: Sandbox,
  write: ColdStart,
  claim: SandboxClaim,
  { deps, memory, metrics }: ClaimSources,
): Promise<void> {
  const { namespace = '', name = '', uid } = stored.metadata
  const key = keyOf(claim)
  const claimUid = claim.metadata.uid ?? ''
  let sandbox = stored
  if (!isOurs(stored, claim, deps.originKeys())) {
    memory.openWrites.set(key, { claimUid, write, losses: memory.openWrites.get(key)?.losses ?? 0 })
    const signed = withOrigin(deps.originKeys().current, stored, claimUid)
    const origin = signed.metadata.annotations?.[annotations.origin]
    // Without a version: the Sandbox controller may have written a status since. The proof fits only what it is made for.
    const patch = { metadata: { uid, annotations: { [annotations.origin]: origin } } }
    sandbox = await deps.client.patch(sandboxKind, { namespace, name }, patch, { type: 'merge' })
  }
  memory.openWrites.delete(key)
  memory.remember(claimUid, sandbox, deps.clock.now())
  metrics.served(claim, sandbox)
}

/** Made by an attempt of ours: for the claim, with the very signature that was sent. */
function isSignedLike(stored: Sandbox, { sandbox }: ColdStart, claim: SandboxClaim): boolean {
  const [own, sent] = [stored, sandbox].map(({ metadata }) => metadata.annotations?.[annotations.origin])
  return controllerOf(stored)?.uid === claim.metadata.uid && own === sent
}
