import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '../../certs/ca-bundle.ts'
import { createFileCertificates } from '../../certs/files.ts'
import { createCertificateManager } from '../../certs/manager.ts'
import type { CertificateSource } from '../../certs/source.ts'
import { buildApp } from '../../webhooks/app.ts'
import { createFactSource } from '../../webhooks/facts.ts'
import { createMutate } from '../../webhooks/mutate.ts'
import { ListenError, startServer, type GateServer, type KeyPair } from '../../webhooks/server.ts'
import { createValidate, type Judgement } from '../../webhooks/validate.ts'
import { kinds } from '../api/kinds.ts'
import { createValidators } from '../api/validators.ts'
import { templateOf } from '../planning/pools.ts'
import { actorOf } from '../policy/actor.ts'
import { evaluate } from '../policy/evaluate.ts'
import { mutate } from '../policy/mutations.ts'
import { CommandError } from './command.ts'
import { install } from './manifests.ts'
import type { ServeContext } from './serve-context.ts'

/** A managed certificate takes about a second; who waits longer is told why. */
const certificatePatienceMs = 5_000

export interface GateOptions {
  readonly port: number
  readonly host?: string | undefined
  /** Serve the pair in this directory; absent: manage certificates. */
  readonly certDirectory?: string | undefined
  readonly certHosts: readonly string[]
}

/** The admission webhooks of this process. Until they answer with a trusted certificate it is not ready. */
export interface Gate {
  /** Resolves with the port once they answer; with undefined when the signal ends before there is a certificate. */
  start(signal: AbortSignal): Promise<number | undefined>
  /** Not ready at once; answers for that long, then closes. */
  drain(drainMs: number): Promise<void>
}

export function createGate(context: ServeContext, options: GateOptions): Gate {
  const { metrics } = context
  const work = new AbortController()
  const certificates = certificateSource(context, options)
  let server: GateServer | undefined
  let following: Promise<void> | undefined
  context.addCheck({ name: 'gate', problem: () => gateProblem(server) })
  context.addCheck({
    name: 'certificate',
    problem: () => (certificates.state.isReady ? undefined : certificates.state.because),
  })
  metrics.certificateExpiry.measure(() =>
    certificates.expiries().map(({ what, at }) => ({ labels: { what }, value: at / 1000 })),
  )
  return {
    async start(signal) {
      const first = firstPair(certificates)
      following = certificates.run(work.signal)
      const pair = await awaitPair(first, () => certificates.state.because, context, signal)
      if (pair === undefined) return undefined
      const listening = await listen(context, options, pair)
      certificates.onChange((next) => listening.useCertificate(next))
      server = listening
      return listening.port
    },
    async drain(drainMs) {
      await server?.drain(drainMs)
      work.abort()
      await following
    },
  }
}

function gateProblem(server: GateServer | undefined): string | undefined {
  if (server === undefined) return 'not listening yet'
  return server.isAccepting ? undefined : 'draining'
}

function certificateSource(
  { client, clock, log, namespace, configuration }: ServeContext,
  options: GateOptions,
): CertificateSource {
  if (options.certDirectory !== undefined) {
    return createFileCertificates({ directory: options.certDirectory, clock, log })
  }
  const service = `${install.service}.${namespace}`
  const { clusterDomain } = configuration.current.sandboxes
  return createCertificateManager({
    client,
    clock,
    log,
    namespace,
    secretName: install.authoritySecret,
    hosts: [`${service}.svc`, `${service}.svc.${clusterDomain}`, service, ...options.certHosts],
    configurations: [
      { resource: mutatingWebhookConfigurations, name: install.registration },
      { resource: validatingWebhookConfigurations, name: install.registration },
    ],
  })
}

/** Says now and then what the gate waits for. */
async function awaitPair(
  first: Promise<KeyPair>,
  because: () => string,
  { clock, log }: ServeContext,
  signal: AbortSignal,
): Promise<KeyPair | undefined> {
  for (;;) {
    const pair = await Promise.race([first, clock.sleep(certificatePatienceMs, signal)])
    if (pair) return pair
    if (signal.aborted) return undefined
    log.warn({ because: because() }, 'waiting for a serving certificate')
  }
}

async function firstPair(certificates: CertificateSource): Promise<KeyPair> {
  const { promise, resolve } = Promise.withResolvers<KeyPair>()
  certificates.onChange(resolve)
  return await promise
}

async function listen(context: ServeContext, { port, host }: GateOptions, pair: KeyPair): Promise<GateServer> {
  const app = buildApp(admission(context))
  try {
    return await startServer({ app, pair, port, ...(host !== undefined && { host }), clock: context.clock })
  } catch (error) {
    if (error instanceof ListenError) throw new CommandError(error.message, undefined, error)
    throw error
  }
}

/** What `buildApp` needs to judge: the rules, their facts and their configuration, put together. */
export function admission({
  client,
  caches,
  configuration,
  clock,
  log,
  metrics,
  events,
}: Pick<ServeContext, 'client' | 'caches' | 'configuration' | 'clock' | 'log' | 'metrics' | 'events'>) {
  const { informers } = caches
  const validators = createValidators(kinds)
  const judgement: Judgement = {
    evaluate,
    actorOf,
    problemsOf(kind, object) {
      const own = kinds.find((each) => each.kind === kind)
      return own ? validators.problemsOf(own, object) : []
    },
  }
  const config = () => configuration.current
  const stores = {
    sandboxes: informers.sandboxes.store,
    templates: informers.templates.store,
    warmPools: informers.warmPools.store,
    sets: informers.sets.store,
    claims: informers.claims.store,
    pods: informers.pods.store,
    networkPolicies: informers.networkPolicies.store,
    namespaces: informers.namespaces.store,
  }
  const facts = createFactSource({ client, stores, config, clock, templateOf })
  const serverClockOffsetMs = () => client.serverClockOffsetMs()
  const validate = createValidate({ judgement, facts, config, clock, serverClockOffsetMs, log, metrics, events })
  return {
    validate,
    mutate: createMutate({ judgement, mutate, config, clock, serverClockOffsetMs }),
    clock,
    log,
    metrics,
  }
}
