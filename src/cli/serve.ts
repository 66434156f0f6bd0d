import type { FastifyInstance } from 'fastify'
import { KubeConfigError, loadKubeConfig } from '../kube/config.ts'
import { createKubeClient } from '../kube/rest-client.ts'
import { systemClock } from '../runtime/clock.ts'
import { createEventRecorder } from '../telemetry/events.ts'
import { createLogger, logLevels, type LogLevel } from '../telemetry/logger.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { buildProbes, type ReadinessCheck } from '../telemetry/probes.ts'
import { awaitApi } from './await-api.ts'
import { createCaches } from './caches.ts'
import { loadConfiguration } from './configuration.ts'
import { CommandError, exitCodes, parseFlags, portFlag, secondsFlag, type Command } from './command.ts'
import { install } from './manifests.ts'
import type { ServeContext } from './serve-context.ts'
import { createGate } from './serve-gate.ts'
import { createReconcilers } from './serve-reconcilers.ts'
import { version } from './version.ts'

const help = `Usage: sandgate serve [FLAGS]

Runs the admission webhooks (the gate) and the controllers (the reconcilers).

  --gate                   run the gate only; with --reconcilers, both (which is the default)
  --reconcilers            run the reconcilers only; with --gate, both
  --config FILE            configuration file (default: all defaults)
  --kubeconfig FILE        cluster to use (default: KUBECONFIG, then the pod's own service account, then ~/.kube/config)
  --context NAME           context of the kubeconfig
  --namespace NAME         namespace that sandgate is installed in (default: the cluster access's, then ${install.namespace})
  --port PORT              port of the webhooks (default 8443)
  --host ADDRESS           address to listen on (default: all)
  --http-port PORT         port of /healthz, /readyz and /metrics (default 8080)
  --cert-dir DIR           serve tls.crt and tls.key from DIR instead of managing certificates
  --cert-host HOST         further name or address that the managed certificate is for; may be repeated
  --drain-seconds N        how long to keep answering after SIGTERM (default 10)
  --log-level LEVEL        ${logLevels.join(', ')} (default info)

Examples:
  sandgate serve --config=/etc/sandgate/config.yaml       # in a pod
  sandgate serve --reconcilers --kubeconfig ~/.kube/config  # controllers only, from a laptop

SIGTERM ends it: not ready at once, then the drain, then exit code 0. A second signal ends it at once.
`

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Run the admission webhooks and the controllers.',
  help,
  run: serve,
}

function options(args: readonly string[]) {
  const flags = parseFlags('serve', args, {
    gate: { type: 'boolean' },
    reconcilers: { type: 'boolean' },
    config: { type: 'string' },
    kubeconfig: { type: 'string' },
    context: { type: 'string' },
    namespace: { type: 'string' },
    port: { type: 'string', default: '8443' },
    host: { type: 'string' },
    'http-port': { type: 'string', default: '8080' },
    'cert-dir': { type: 'string' },
    'cert-host': { type: 'string', multiple: true, default: [] },
    'drain-seconds': { type: 'string', default: '10' },
    'log-level': { type: 'string', default: 'info' },
  })
  const logLevel = logLevels.find((level) => level === flags['log-level'])
  if (!logLevel) {
    const message = `--log-level takes one of ${logLevels.join(', ')}, not '${flags['log-level']}'.`
    throw new CommandError(message, exitCodes.usage)
  }
  const isBoth = flags.gate === flags.reconcilers
  return {
    ...flags,
    gate: isBoth || flags.gate === true,
    reconcilers: isBoth || flags.reconcilers === true,
    port: portFlag('serve', 'port', flags.port),
    httpPort: portFlag('serve', 'http-port', flags['http-port']),
    drainMs: secondsFlag('serve', 'drain-seconds', flags['drain-seconds']) * 1000,
    certDirectory: flags['cert-dir'],
    certHosts: flags['cert-host'],
    logLevel: logLevel satisfies LogLevel,
  }
}

async function serve(args: readonly string[]): Promise<number> {
  const flags = options(args)
  const clock = systemClock
  const log = createLogger({ level: flags.logLevel })
  const access = clusterAccess(flags)
  const namespace = flags.namespace ?? access.namespace ?? install.namespace
  const metrics = createMetrics({ version })
  const client = createKubeClient(access, {
    userAgent: `sandgate/${version}`,
    onRequest: ({ verb, resource, code }) => metrics.apiRequests.inc({ verb, resource, code: String(code) }),
  })
  const stop = stopSignals()
  const configuration = await loadConfiguration({ path: flags.config, clock, log, metrics })
  const checks: ReadinessCheck[] = [{ name: 'configuration', problem: () => configuration.problem }]
  const probes = buildProbes({ registry: metrics.registry, checks })
  await listen(probes, flags.httpPort)

  const work = new AbortController()
  const sandboxController = flags.reconcilers && configuration.current.sandboxes.controller === 'builtin'
  const runs = { reconcilers: flags.reconcilers, sandboxController }
  const caches = createCaches({ runs, client, clock, log, metrics })
  const events = createEventRecorder({ client, component: 'sandgate', clock, log })
  const context: ServeContext = {
    client,
    clock,
    log,
    metrics,
    events,
    caches,
    configuration,
    namespace,
    addCheck: (check) => void checks.push(check),
  }
  context.addCheck({
    name: 'caches',
    problem: () => (caches.pending().length > 0 ? `waiting for ${caches.pending().join(', ')}` : undefined),
  })
  const gate = flags.gate ? createGate(context, flags) : undefined
  log.info(
    { version, server: access.server.origin, namespace, gate: flags.gate, reconcilers: flags.reconcilers },
    'starting',
  )
  await awaitApi({ client, clock, log, server: access.server }, stop)
  const reconcilers = flags.reconcilers ? await createReconcilers(context, stop) : undefined
  const following = caches.run(work.signal)
  await Promise.race([caches.synced, aborted(stop)])
  const port = stop.aborted ? undefined : await gate?.start()
  const reconciling = stop.aborted ? undefined : reconcilers?.run(stop)
  if (!stop.aborted) log.info({ port, httpPort: flags.httpPort }, 'ready')

  await Promise.race([aborted(stop), ...(reconciling ? [reconciling] : [])])
  log.info('stopping')
  // The lease is released while the gate still answers, so that a successor can lead at once.
  await Promise.all([reconciling, gate?.drain(flags.drainMs)])
  await events.flush()
  work.abort()
  await following
  configuration.close()
  await probes.close()
  await client.close()
  return exitCodes.ok
}

function clusterAccess({ kubeconfig, context }: { kubeconfig?: string | undefined; context?: string | undefined }) {
  try {
    return loadKubeConfig({
      ...(kubeconfig !== undefined && { kubeconfig }),
      ...(context !== undefined && { context }),
    })
  } catch (error) {
    if (error instanceof KubeConfigError) throw new CommandError(error.message, exitCodes.failed, error)
    throw error
  }
}

/** Ends with the first SIGTERM or SIGINT; a second one ends the process there and then. */
function stopSignals(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(exitCodes.failed)
      stop.abort()
    })
  }
  return stop.signal
}

async function listen(app: FastifyInstance, port: number): Promise<void> {
  try {
    await app.listen({ port, host: '::' })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const advice =
      code === 'EADDRINUSE' ? 'another process uses it. Stop that one, or choose another with --http-port.' : code
    throw new CommandError(`cannot listen on port ${port}: ${advice}`, exitCodes.failed, error)
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
