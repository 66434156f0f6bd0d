import type { SandboxClaim } from '../api/kinds.ts'
import { claimReasons } from '../api/vocabulary.ts'
import { isKubeError } from '../kube/errors.ts'
import { keyOf } from '../kube/object.ts'
import { notReadyStatus } from '../planning/claim-status.ts'
import { planClaim } from '../planning/plan-claim.ts'
import { runController, type Outcome } from '../runtime/controller.ts'
import type { Candidates } from './candidates.ts'
import { act, publish, repeat } from './claim-act.ts'
import { gatherClaim, type ClaimSources, type LiveReads } from './claim-gather.ts'
import { ClaimMemory } from './claim-memory.ts'
import { createClaimMetrics } from './claim-metrics.ts'
import { wakeClaims } from './claim-wakes.ts'
import { createControllerQueue } from './controller-queue.ts'
import type { Controller, ControllerDependencies } from './dependencies.ts'

/** A claim needs few steps: confirm, adopt, publish. More than this means that two views keep contradicting. */
const maxSteps = 12
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
  const sources: ClaimSources = { deps, candidates, memory }
  const metrics = createClaimMetrics(deps)
  const waiting = new Set<string>()
  /** Claims that wait for their pool to have something to hand out, by pool UID. */
  const warming = new Map<string, Set<string>>()

  const reconcile = async (key: string): Promise<Outcome> => {
    const live: LiveReads = { confirmed: new Set() }
    try {
      for (let steps = 0; steps < maxSteps; steps++) {
        const now = deps.clock.now() + deps.client.serverClockOffsetMs()
        const view = gatherClaim(key, live, sources, now)
        const lost = view.claim && memory.inFlight.get(view.claim.metadata.uid ?? '')
        if (view.claim && lost) {
          const step = await repeat(lost, view.claim, live, sources)
          if (step === 'go-on') continue
          return step
        }
        const plan = planClaim(view, now)
        if (plan.kind === 'wait' && view.pool.kind === 'found') {
          const poolUid = view.pool.value.metadata.uid ?? ''
          warming.set(poolUid, (warming.get(poolUid) ?? new Set()).add(key))
        }
        const step = await act(plan, view, live, sources)
        metrics.observe(plan, view, now)
        if (step !== 'go-on') return step
      }
      return { kind: 'recheck', afterMs: 1_000, because: 'its view kept changing' }
    } catch (error) {
      await reportFault(key, error)
      throw error
    } finally {
      waiting.delete(key)
    }
  }

  /** Says on an unbound claim that something unexpected happened; contention or an absent server is no news to its user. */
  async function reportFault(key: string, error: unknown): Promise<void> {
    if (isKubeError(error, 'Conflict', 'TooManyRequests', 'Unreachable', 'OutcomeUnknown', 'Aborted')) return
    const now = deps.clock.now() + deps.client.serverClockOffsetMs()
    const { claim, owned } = gatherClaim(key, { confirmed: new Set() }, sources, now)
    if (claim === undefined || owned.length > 0) return
    const message = error instanceof Error ? error.message : String(error)
    const status = notReadyStatus(claim, { reason: claimReasons.reconcilerError, message }, now, { keepSandbox: true })
    await publish({ kind: 'publish', status }, claim, sources).catch((err: unknown) => {
      deps.log.debug({ claim: key, err }, 'could not report a fault on its claim')
    })
  }

  deps.informers.claims.onChange(({ kind, object }) => {
    const key = keyOf(object)
    if (kind === 'deleted') memory.forgetClaim(object.metadata.uid ?? '')
    else if (isNew(object)) waiting.add(key)
    queue.add(key)
  })
  deps.informers.sandboxes.onChange(({ kind, object }) => {
    if (kind === 'deleted') memory.forgetSandbox(object.metadata.uid ?? '')
  })
  candidates.onAvailable((poolUid) => {
    const keys = warming.get(poolUid) ?? []
    warming.delete(poolUid)
    for (const key of keys) queue.add(key)
  })
  wakeClaims(deps, queue)

  return {
    name: 'claim',
    queue,
    waiting: () => waiting.size,
    run: (signal) =>
      runController({ name: 'claim', queue, reconcile, concurrency, clock: deps.clock, log: deps.log }, signal),
  }
}

function isNew({ metadata, status }: SandboxClaim): boolean {
  return metadata.deletionTimestamp === undefined && status?.sandbox === undefined && status?.conditions === undefined
}
