import { hostname } from 'node:os'
import { createCandidates } from '../controllers/appraisal.ts'
import { createClaimController } from '../controllers/claim-controller.ts'
import type { Controller, ControllerDependencies } from '../controllers/dependencies.ts'
import { createOriginKeyring } from '../controllers/origin-keys.ts'
import { createPoolController } from '../controllers/pool-controller.ts'
import { createSandboxController } from '../controllers/sandbox-controller.ts'
import { createTemplateController } from '../controllers/template-controller.ts'
import { fencedClient } from '../kube/fenced-client.ts'
import { createLeaderElection } from '../runtime/leader-election.ts'
import type { ServeContext } from './serve-context.ts'

/** Name of the Lease that the reconcilers of all replicas compete for. */
const leaseName = 'sandgate-reconcilers'

/** Competes for the lease and runs every controller while this process holds it; resolves when the signal has ended. */
export async function runReconcilers(context: ServeContext, signal: AbortSignal): Promise<void> {
  const { client, clock, log, metrics, caches, configuration, namespace, events } = context
  const election = createLeaderElection({
    client,
    namespace,
    name: leaseName,
    identity: `${process.env['POD_NAME'] ?? hostname()}_${crypto.randomUUID()}`,
    clock,
    log,
  })
  metrics.leader.measure(() => [{ labels: {}, value: election.canWrite() ? 1 : 0 }])

  const fenced = fencedClient(client, () => election.canWrite())
  const keyring = createOriginKeyring({ client: fenced, namespace, clock, log })
  let claimsWaiting = () => 0
  const deps: ControllerDependencies = {
    client: fenced,
    informers: caches.informers,
    config: () => configuration.current,
    onConfigChange: (listener) => configuration.onChange(listener),
    originKeys: () => keyring.keys,
    clock,
    log,
    events,
    metrics,
    claimsWaiting: () => claimsWaiting(),
    random: Math.random,
  }
  const claims = createClaimController(deps, createCandidates(deps))
  claimsWaiting = claims.waiting
  const controllers: Controller[] = [claims, createPoolController(deps), createTemplateController(deps)]
  if (configuration.current.sandboxes.controller === 'builtin') controllers.push(createSandboxController(deps))

  await election.run(async (leading) => {
    // A successor starts from what the API server has, not from what this process's caches had while it did not lead.
    await caches.relist(leading)
    await keyring.load(leading)
    log.info({ controllers: controllers.map(({ name }) => name) }, 'leading')
    await Promise.all([keyring.run(leading), ...controllers.map((controller) => controller.run(leading))])
    log.info('no longer leading')
  }, signal)
}
