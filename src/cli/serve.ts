import type { FastifyInstance } from 'fastify'
import { systemClock } from '../runtime/clock.ts'
import { createEventRecorder } from '../telemetry/events.ts'
import { createLogger } from '../telemetry/logger.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { buildProbes, type ReadinessCheck } from '../telemetry/probes.ts'
import { awaitApi } from './await-api.ts'
import { createCaches } from './caches.ts'
import { withCluster, type Cluster } from './cluster.ts'
import { CommandError, exitCodes, type Command } from './command.ts'
import { loadConfiguration } from './configuration.ts'
import { install } from './manifests.ts'
import type { ServeContext } from './serve-context.ts'
import { createGate } from './serve-gate.ts'
import { serveHelp, serveOptions, type ServeOptions } from './serve-options.ts'
import { createReconcilers } from './serve-reconcilers.ts'
import { stopSignals } from './stop-signals.ts'
import { version } from './version.ts'

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Run the admission webhooks and the controllers.',
  help: serveHelp,
  async run(args) {
    const options = serveOptions(args)
    const metrics = createMetrics({ version })
    const onRequest = ({ verb, resource, code }: { verb: string; resource: string; code: string }) =>
      metrics.apiRequests.inc({ verb, resource, code })
    await withCluster(options, (cluster) => serve(cluster, metrics, options), { onRequest })
    return exitCodes.ok
  },
}

async function serve(
  { access, client }: Cluster,
  metrics: ServeContext['metrics'],
  options: ServeOptions,
): Promise<void> {
  const clock = systemClock
  const log = createLogger({ level: options.logLevel })
  const namespace = options.namespace ?? access.namespace ?? install.namespace
  const stop = stopSignals()
  const configuration = await loadConfiguration({ path: options.config, clock, log, metrics })
  const checks: ReadinessCheck[] = [{ name: 'configuration', problem: () => configuration.problem }]
  const probes = buildProbes({ registry: metrics.registry, checks })
  await listen(probes, options.httpPort)

  const sandboxController = options.reconcilers && configuration.current.sandboxes.controller === 'builtin'
  const runs = { reconcilers: options.reconcilers, sandboxController }
  const caches = createCaches({ runs, client, clock, log, metrics })
  checks.push({
    name: 'caches',
    problem: () => (caches.pending().length > 0 ? `waiting for ${caches.pending().join(', ')}` : undefined),
  })
  const events = createEventRecorder({ client, component: 'sandgate', clock, log })
  const addCheck = (check: ReadinessCheck) => void checks.push(check)
  const context: ServeContext = { client, clock, log, metrics, events, caches, configuration, namespace, addCheck }
  const gate = options.gate ? createGate(context, options) : undefined
  const { gate: isGate, reconcilers: isReconcilers } = options
  log.info({ version, server: access.server.origin, namespace, gate: isGate, reconcilers: isReconcilers }, 'starting')

  await awaitApi({ client, clock, log, server: access.server }, stop)
  const reconcilers = options.reconcilers ? await createReconcilers(context, stop) : undefined
  const work = new AbortController()
  const following = caches.run(work.signal)
  await Promise.race([caches.synced, aborted(stop)])
  const port = stop.aborted ? undefined : await gate?.start(stop)
  const reconciling = stop.aborted ? undefined : reconcilers?.run(stop)
  if (!stop.aborted) log.info({ port, httpPort: options.httpPort }, 'ready')

  await Promise.race([aborted(stop), ...(reconciling ? [reconciling] : [])])
  log.info('stopping')
  // The lease is released while the gate still answers, so that a successor can lead at once.
  await Promise.all([reconciling, gate?.drain(options.drainMs)])
  await events.flush()
  work.abort()
  await following
  configuration.close()
  await probes.close()
}

async function listen(app: FastifyInstance, port: number): Promise<void> {
  try {
    await app.listen({ port, host: '::' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A machine without IPv6.
    if (code === 'EAFNOSUPPORT') return void (await app.listen({ port, host: '0.0.0.0' }))
    const advice =
      code === 'EADDRINUSE' ? 'another process uses it. Stop that one, or choose another with --http-port.' : code
    throw new CommandError(`cannot listen on port ${port}: ${advice}`, exitCodes.failed, error)
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
