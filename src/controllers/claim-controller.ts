import type { SandboxClaim } from '../api/kinds.ts'
import { claimReasons } from '../api/vocabulary.ts'
import { isKubeError } from '../kube/errors.ts'
import { keyOf } from '../kube/object.ts'
import { isOver } from '../planning/claim-ownership.ts'
import { notReadyStatus } from '../planning/claim-status.ts'
import type { ClaimPlan, ClaimView } from '../planning/claim-view.ts'
import { planClaim } from '../planning/plan-claim.ts'
import { runController, type Outcome } from '../runtime/controller.ts'
import type { Candidates } from './candidates.ts'
import { act, publish, repeat } from './claim-act.ts'
import { abandon } from './claim-adopt.ts'
import { gatherClaim, servingPool, type ClaimSources } from './claim-gather.ts'
import { noReads, type LiveReads } from './claim-live-reads.ts'
import { ClaimMemory, type OpenWrite } from './claim-memory.ts'
import { createClaimMetrics } from './claim-metrics.ts'
import { ClaimWaiters } from './claim-waiters.ts'
import { wakeClaims } from './claim-wakes.ts'
import { createControllerQueue } from './controller-queue.ts'
import type { Controller, ControllerDependencies } from './dependencies.ts'

/** A claim needs few steps: confirm, adopt, publish. More than this means that two views keep contradicting. */
const maxSteps = 12
const contradictionRecheckMs = 1_000
/** In-flight claims wait for the API server, not for us; enough to keep it busy in a burst. */
const concurrency = 48

export interface ClaimController extends Controller {
  /** How many claims could be bound now and are not: refilling pools yields to them. */
  waiting(): number
}

/** Binds claims to sandboxes: gather, plan, act, until the plan has nothing more to do. */
export function createClaimController(deps: ControllerDependencies, candidates: Candidates): ClaimController {
  const queue = createControllerQueue('claim', deps)
  const memory = new ClaimMemory()
  const sources: ClaimSources = { deps, candidates, memory, metrics: createClaimMetrics(deps) }
  const { claims, sandboxes } = deps.informers
  /** New claims that have not had a pass yet. */
  const waiting = new Set<string>()
  const waiters = new ClaimWaiters()
  /** What happens while another process leads is no concern of ours: on taking over, every claim is looked at. */
  let isRunning = false
  const wake = (key: string) => {
    if (isRunning) queue.add(key)
  }

  const reconcile = async (key: string): Promise<Outcome> => {
    const live = noReads()
    const uid = claims.store.get(key)?.metadata.uid
    try {
      for (let steps = 0; steps < maxSteps; steps++) {
        const outcome = await step(key, live)
        if (outcome !== 'go-on') return outcome
      }
      return { kind: 'recheck', afterMs: contradictionRecheckMs, because: 'its view kept changing' }
    } catch (error) {
      await reportFault(key, error)
      throw error
    } finally {
      waiting.delete(key)
      // It went while this was under way, and with it the occasion to forget what has been learnt since.
      if (uid !== undefined && claims.store.get(key)?.metadata.uid !== uid) memory.forgetClaim(uid)
    }
  }

  async function step(key: string, live: LiveReads) {
    const now = serverTime(deps)
    const view = gatherClaim(key, live, sources, now)
    const open = memory.openWrites.get(key)
    if (open && isWanted(open, view.claim)) return repeat(open.write, view.claim, live, sources)
    if (open) {
      memory.openWrites.delete(key)
      abandon(open.write, sources)
    }
    const plan = planClaim(view, now)
    const outcome = await act(plan, view, live, sources)
    if (outcome === 'go-on') return outcome
    sources.metrics.ended(plan, view, now)
    queueForStock(key, plan, view)
    return outcome
  }

  /** Each sandbox that a pool comes to have wakes one claim. What that claim leaves is offered to the next. */
  function queueForStock(key: string, plan: ClaimPlan, { pool, owned }: ClaimView): void {
    const poolUid = servingPool(pool)
    const awaitsStock = (plan.kind === 'wait' || plan.kind === 'publish') && plan.awaitsStock === true
    if (awaitsStock) waiters.join(key, poolUid)
    else waiters.leave(key)
    if (owned.length === 0 && candidates.best(poolUid).kind === 'candidate') wakeWaiter(poolUid)
  }

  function wakeWaiter(poolUid: string): void {
    const key = waiters.next(poolUid)
    if (key !== undefined) wake(key)
  }

  /** Says on an unbound claim that something unexpected happened; contention or an absent server is no news to its user. */
  async function reportFault(key: string, error: unknown): Promise<void> {
    if (isKubeError(error, 'Conflict', 'TooManyRequests', 'Unreachable', 'OutcomeUnknown', 'Aborted')) return
    const now = serverTime(deps)
    const { claim, owned } = gatherClaim(key, noReads(), sources, now)
    if (!claim || claim.metadata.deletionTimestamp !== undefined || isOver(claim)) return
    // Trouble that may pass says nothing about a sandbox that was handed out.
    if (owned.length > 0 || claim.status?.sandbox?.name !== undefined) return
    const message = error instanceof Error ? error.message : String(error)
    const status = notReadyStatus(claim, { reason: claimReasons.reconcilerError, message }, now, { keepSandbox: false })
    await publish({ kind: 'publish', status }, claim, sources).catch((err: unknown) => {
      deps.log.debug({ claim: key, err }, 'could not report a fault on its claim')
    })
  }

  claims.onChange(({ kind, object }) => {
    if (kind === 'deleted') memory.forgetClaim(object.metadata.uid ?? '')
    else if (memory.isEcho(object)) return
    else if (isRunning && isNew(object)) waiting.add(keyOf(object))
    wake(keyOf(object))
  })
  sandboxes.onChange(({ kind, object }) => {
    if (kind === 'deleted') memory.forgetSandbox(object.metadata.uid ?? '')
  })
  candidates.onAvailable(wakeWaiter)
  wakeClaims(deps, wake)

  return {
    name: 'claim',
    queue,
    waiting: () => waiting.size,
    run: async (signal) => {
      // What was known or under way when this process led before is of no use now.
      memory.clear()
      waiters.clear()
      candidates.releaseAll()
      isRunning = true
      for (const claim of claims.store.values()) {
        if (isNew(claim)) waiting.add(keyOf(claim))
        wake(keyOf(claim))
      }
      try {
        await runController({ name: 'claim', queue, reconcile, concurrency, clock: deps.clock, log: deps.log }, signal)
      } finally {
        isRunning = false
        waiting.clear()
        queue.clearDelayed()
      }
    },
  }
}

/** The claim that the write is for is still there, and wants it. */
function isWanted({ claimUid }: OpenWrite, claim: SandboxClaim | undefined): claim is SandboxClaim {
  return claim?.metadata.uid === claimUid && claim.metadata.deletionTimestamp === undefined
}

function isNew({ metadata, status }: SandboxClaim): boolean {
  return metadata.deletionTimestamp === undefined && status?.sandbox === undefined && status?.conditions === undefined
}

function serverTime({ clock, client }: ControllerDependencies): number {
  return clock.now() + client.serverClockOffsetMs()
}
