import { hostname } from 'node:os'
import { createCandidates } from '../controllers/appraisal.ts'
import { createClaimController } from '../controllers/claim-controller.ts'
import type { Controller, ControllerDependencies } from '../controllers/dependencies.ts'
import { createOriginKeyring, type OriginKeyring } from '../controllers/origin-keys.ts'
import { createPoolController } from '../controllers/pool-controller.ts'
import { createSandboxController } from '../controllers/sandbox-controller.ts'
import { createTemplateController } from '../controllers/template-controller.ts'
import { fencedClient } from '../kube/fenced-client.ts'
import { createLeaderElection } from '../runtime/leader-election.ts'
import { install } from './manifests.ts'
import type { ServeContext } from './serve-context.ts'

const keyRetryMs = 2_000

/** The controllers of this process, wired to the caches. Make them before the caches are filled, or they miss what is there. */
export interface Reconcilers {
  /** Competes for the lease and runs every controller while this process holds it, until the signal ends. */
  run(signal: AbortSignal): Promise<void>
}

export async function createReconcilers(context: ServeContext, signal: AbortSignal): Promise<Reconcilers> {
  const { client, clock, log, metrics, caches, configuration, namespace, events } = context
  const election = createLeaderElection({
    client,
    namespace,
    name: install.lease,
    identity: `${process.env['POD_NAME'] ?? hostname()}_${crypto.randomUUID()}`,
    clock,
    log,
  })
  metrics.leader.measure(() => [{ labels: {}, value: election.canWrite() ? 1 : 0 }])
  const keyring = createOriginKeyring({ client, namespace, clock, log })
  await loadKeys(keyring, context, signal)

  let claimsWaiting = () => 0
  const deps: ControllerDependencies = {
    client: fencedClient(client, () => election.canWrite()),
    informers: caches.informers,
    config: () => configuration.current,
    onConfigChange: (listener) => {
      configuration.onChange(listener)
      // What was judged by other keys is judged again too.
      keyring.onChange(listener)
    },
    originKeys: () => keyring.keys(),
    clock,
    log,
    events,
    metrics,
    claimsWaiting: () => claimsWaiting(),
    random: Math.random,
  }
  const claims = createClaimController(deps, createCandidates(deps))
  claimsWaiting = () => claims.waiting()
  const controllers: Controller[] = [claims, createPoolController(deps), createTemplateController(deps)]
  if (configuration.current.sandboxes.controller === 'builtin') controllers.push(createSandboxController(deps))

  const lead = async (leading: AbortSignal) => {
    // A successor starts from what the API server has, not from what its caches had while it did not lead.
    await caches.relist(leading)
    log.info({ controllers: controllers.map(({ name }) => name) }, 'leading')
    await Promise.all(controllers.map((controller) => controller.run(leading)))
    log.info('no longer leading')
  }
  return {
    run: async (until) => {
      await Promise.all([keyring.run(until), election.run(lead, until)])
      // Each key that waits for its time has a timer, which would keep the process alive until then.
      for (const { queue } of controllers) queue.clearDelayed()
    },
  }
}

/** Nothing can be proven without the keys, so their Secret is waited for. */
async function loadKeys(keyring: OriginKeyring, { clock, log }: ServeContext, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await keyring.load()
    } catch (error) {
      log.warn({ error }, 'the keys for the proof of origin cannot be loaded; trying again')
      await clock.sleep(keyRetryMs, signal)
    }
  }
}
