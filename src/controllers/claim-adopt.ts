import { sandboxKind, type Sandbox, type SandboxClaim, type SandboxTemplate } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { isKubeError } from '../kube/errors.ts'
import { keyOf } from '../kube/object.ts'
import { adoptionPatch } from '../planning/adoption.ts'
import { isOurs } from '../planning/claim-ownership.ts'
import { signBound } from '../planning/origin.ts'
import type { ClaimSources } from './claim-gather.ts'
import { readIfThere, type LiveReads } from './claim-live-reads.ts'
import type { ClaimWrite } from './claim-memory.ts'
import { keepOpen, saysNothingOfEarlier, type Step } from './open-writes.ts'

type Adoption = Extract<ClaimWrite, { kind: 'adopt' }>

/** The write that hands `sandbox` to the claim, signed. */
export function adoptionOf(
  claim: SandboxClaim,
  sandbox: Sandbox,
  template: SandboxTemplate,
  { deps }: ClaimSources,
): Adoption {
  const uids = { sandboxUid: sandbox.metadata.uid ?? '', claimUid: claim.metadata.uid ?? '' }
  const proof = signBound(deps.originKeys().current, uids)
  return { kind: 'adopt', sandbox, patch: adoptionPatch(claim, sandbox, template, proof) }
}

/**
 * The one write that binds. Lost races are settled by a live read: ours, so it is done; someone else's or gone, so the
 * next candidate; still the pool's, so the same again on the version that was read.
 */
export async function adopt(
  write: Adoption,
  claim: SandboxClaim,
  live: LiveReads,
  sources: ClaimSources,
): Promise<Step> {
  const { deps, candidates, memory } = sources
  const { sandbox, patch } = write
  const key = keyOf(claim)
  const isRepeated = memory.openWrites.has(key)
  // Chosen and taken with no await between: no other claim can have been offered it.
  candidates.take(sandbox)
  try {
    bound(await deps.client.patch(sandboxKind, refOf(sandbox), patch, { type: 'merge' }), claim, sources)
    return 'go-on'
  } catch (error) {
    if (isKubeError(error, 'OutcomeUnknown')) return keepOpen(write, claim, sources)
    // Of the attempt whose reply was lost, that the next one was turned away says nothing.
    if (isRepeated && saysNothingOfEarlier(error)) throw error
    if (!isRepeated && !isKubeError(error, 'Conflict', 'NotFound')) {
      candidates.giveBack(sandbox)
      throw error
    }
    const current = await readCurrent(write, isRepeated, sources)
    if (current && isOurs(current, claim, deps.originKeys())) {
      bound(current, claim, sources)
      return 'go-on'
    }
    memory.openWrites.delete(key)
    live.lostRaces += 1
    const isPools =
      current?.metadata.uid === sandbox.metadata.uid && current?.metadata.labels?.[labels.warmPool] !== undefined
    if (isPools) candidates.refresh(current)
    else candidates.drop(sandbox, current)
    if (!isKubeError(error, 'Conflict', 'NotFound')) throw error
    return 'go-on'
  }
}

/** The claim is not to have it any more, whatever became of the write: the cache will tell whose it is. */
export function abandon(write: ClaimWrite, { candidates }: ClaimSources): void {
  if (write.kind === 'adopt') candidates.giveBack(write.sandbox)
}

function bound(sandbox: Sandbox, claim: SandboxClaim, { deps, candidates, memory, metrics }: ClaimSources): void {
  memory.openWrites.delete(keyOf(claim))
  memory.remember(claim.metadata.uid ?? '', sandbox, deps.clock.now())
  candidates.adopted(sandbox)
  metrics.served(claim, sandbox)
}

/** What became of the sandbox. When that cannot be found out, an open write stays open and any other is given up. */
async function readCurrent(write: Adoption, isRepeated: boolean, sources: ClaimSources): Promise<Sandbox | undefined> {
  try {
    return await readIfThere(sources.deps.client, sandboxKind, refOf(write.sandbox))
  } catch (error) {
    if (!isRepeated) sources.candidates.giveBack(write.sandbox)
    throw error
  }
}

function refOf({ metadata: { namespace = '', name = '' } }: Sandbox) {
  return { namespace, name }
}
