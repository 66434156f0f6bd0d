import type { Sandbox } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { controllerOf } from '../kube/object.ts'
import { memberState } from './member-state.ts'
import { isSandboxSet, poolHashOf, type Pool } from './pools.ts'
import type { Worth } from './rank-candidates.ts'

/** What is known of a sandbox besides itself. */
export interface Judgement {
  /** Its proof of origin is good for this pool's UID. */
  readonly isProven: boolean
  /** It is what its pool would make now. */
  readonly isFresh: boolean
  /** The Pod of its name is the one that the Sandbox controller made for it, as far as that can be known. */
  readonly hasOwnPod: boolean
}

/**
 * What the sandbox is worth to a claim on `pool`, or undefined when it must not be handed out: being deleted, ended,
 * suspended, without proof or marks, with a Pod that is not its own, of another pool (by UID: one of the same name may be
 * its successor), or stale in a pool that recreates. Members of a SandboxSet are handed out only when they are Ready.
 */
export function candidateWorth(
  sandbox: Sandbox,
  pool: Pool,
  { isProven, isFresh, hasOwnPod }: Judgement,
): Worth | undefined {
  const own = sandbox.metadata.labels ?? {}
  const isMember =
    isProven &&
    sandbox.metadata.deletionTimestamp === undefined &&
    pool.metadata.deletionTimestamp === undefined &&
    sandbox.metadata.namespace === pool.metadata.namespace &&
    controllerOf(sandbox)?.uid === pool.metadata.uid &&
    own[labels.warmPool] === poolHashOf(pool) &&
    own[labels.templateRefHash] !== undefined
  if (!isMember) return undefined
  const isSet = isSandboxSet(pool)
  if (!isFresh && !isSet && pool.spec.updateStrategy?.type === 'Recreate') return undefined
  const state = memberState(sandbox)
  const hasAddress = (sandbox.status?.podIPs?.length ?? 0) > 0
  if (hasAddress && !hasOwnPod) return undefined
  switch (state) {
    case 'available':
      return isFresh || !isSet ? 'ready' : 'outdated'
    case 'creating':
      return !isSet && hasAddress ? 'addressed' : 'warming'
    case 'paused':
    case 'dead':
      return undefined
    default:
      return state satisfies never
  }
}
