import type { Logger } from 'pino'
import type { KubeClient } from '../src/kube/client.ts'
import type { Clock } from '../src/runtime/clock.ts'
import { createAuthority, signServing } from './authority.ts'
import { createCaBundles, type CaBundle, type ConfigurationName } from './ca-bundle.ts'
import { followConfigurations } from './follow.ts'
import { isTrusted, parseCertificate, type KeyPair } from './pem.ts'
import { isServingDue, planRotation, type RotationPlan } from './rotation.ts'
import type { CertificateSource, CertificateState } from './source.ts'
import { createAuthorityStore, type AuthorityState, type StoredState } from './store.ts'

export interface CertificateManagerOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly log: Logger
  /** The product's own namespace, and the Secret in it that holds the authorities. */
  readonly namespace: string
  readonly secretName: string
  /** DNS names and IP addresses under which the API server calls. */
  readonly hosts: readonly string[]
  /** The configurations whose caBundles are kept. */
  readonly configurations: readonly ConfigurationName[]
}

/** A certificate source that runs its own authority. */
export interface CertificateManager extends CertificateSource {
  /** One pass: reads, repairs, rotates and renews as far as it can now. Resolves with the time until the next is due. */
  pass(): Promise<number>
}

/** Renewal is checked each minute by the wall clock: a timer for the day itself would be late on a machine that slept. */
const checkMs = 60_000
/** After a pass that failed, e.g. while the API server restarts. */
const retryMs = 5000
/** Steps in one pass. A whole rotation takes six; more means that replicas are at odds, and the next pass goes on. */
const maxSteps = 12

export function createCertificateManager(options: CertificateManagerOptions): CertificateManager {
  const { client, clock, log, hosts, configurations } = options
  const store = createAuthorityStore(client, options.namespace, options.secretName)
  const caBundles = createCaBundles(client, configurations)
  const handlers: ((pair: KeyPair) => void)[] = []
  let remembered: AuthorityState = {}
  let served: KeyPair | undefined
  let state: CertificateState = { isReady: false, because: 'no certificate yet' }
  let isRegistered = true
  let published: { readonly fingerprint: string; readonly since: number } | undefined

  async function view(): Promise<{ stored: StoredState; bundles: CaBundle[]; plan: RotationPlan }> {
    const stored = await store.read(clock.now())
    if (stored.problems.length > 0) log.warn({ problems: stored.problems }, 'the certificate Secret needs repair')
    const bundles = await caBundles.read()
    state = stateOf(served, bundles, clock.now())
    if (bundles.length === 0 && isRegistered)
      log.warn('no webhook is registered: nothing is admitted through this gate')
    isRegistered = bundles.length > 0
    const fingerprints = bundles.map(({ certificates }) => new Set(certificates.map((each) => each.fingerprint256)))
    const plan = planRotation({
      now: clock.now(),
      stored: stored.state,
      remembered,
      bundles: fingerprints,
      nextPublishedForMs: publishedForMs(stored.state.next, fingerprints),
    })
    if (stored.state.current) remembered = stored.state
    return { stored, bundles, plan }
  }

  /** Measured by this replica, from its own first sight: a time written by another machine's clock proves nothing. */
  function publishedForMs(next: KeyPair | undefined, bundles: readonly ReadonlySet<string>[]): number {
    const fingerprint = next && parseCertificate(next.cert)?.fingerprint256
    if (fingerprint === undefined || !bundles.every((bundle) => bundle.has(fingerprint))) published = undefined
    else if (published?.fingerprint !== fingerprint) published = { fingerprint, since: clock.monotonic() }
    return published ? clock.monotonic() - published.since : 0
  }

  async function act(plan: RotationPlan, stored: StoredState): Promise<void> {
    switch (plan.kind) {
      case 'write': {
        const isWritten = await store.write(plan.state, stored)
        if (isWritten) log.info({ because: plan.because }, 'the certificate authority was written')
        return
      }
      case 'introduce': {
        const next = await createAuthority(clock.now())
        const isWritten = await store.write({ ...stored.state, next }, stored)
        if (isWritten) log.info({ because: plan.because }, 'a certificate authority was introduced')
        return
      }
      case 'publish':
        await caBundles.add(plan.certificates.join(''))
        return log.info({ authorities: plan.certificates.length }, 'certificate authorities were published')
      case 'retire':
        await caBundles.remove(plan.certificates.join(''))
        await store.write(plan.state, stored)
        return log.info('former certificate authorities were retired')
      case 'wait':
      case 'settled':
        return undefined
      default:
        return plan satisfies never
    }
  }

  /** `stored` was read a moment ago: what is signed here comes from the authority that all replicas agree on. */
  async function renew({ current }: AuthorityState, bundles: readonly CaBundle[]): Promise<void> {
    const certificate = served && parseCertificate(served.cert)
    const trusted = bundles.map(({ certificates }) => certificates)
    if (!current || (certificate && !isServingDue(certificate, trusted, clock.now()))) return
    const pair = await signServing(current, hosts, clock.now())
    served = pair
    log.info({ until: parseCertificate(pair.cert)?.validTo }, 'a serving certificate was signed')
    state = stateOf(served, bundles, clock.now())
    for (const handler of handlers) handler(pair)
  }

  async function pass(): Promise<number> {
    let step = await view()
    for (let steps = 1; steps < maxSteps && step.plan.kind !== 'settled' && step.plan.kind !== 'wait'; steps++) {
      await act(step.plan, step.stored)
      step = await view()
    }
    await renew(step.stored.state, step.bundles)
    return step.plan.kind === 'wait' ? step.plan.forMs : checkMs
  }

  return {
    get current() {
      return served
    },
    get state() {
      return state
    },
    onChange: (handler) => void handlers.push(handler),
    expiries() {
      const { current, next } = remembered
      return [
        { what: 'serving', pair: served },
        { what: 'authority', pair: current },
        { what: 'next-authority', pair: next },
      ].flatMap(({ what, pair }) => {
        const certificate = pair && parseCertificate(pair.cert)
        return certificate ? [{ what, at: certificate.validToDate.getTime() }] : []
      })
    },
    pass,
    async run(signal) {
      // A configuration that someone applied again has lost its caBundle, and every call fails until it is back.
      let poke = new AbortController()
      const following = followConfigurations({ client, clock, configurations, onChange: () => poke.abort() }, signal)
      while (!signal.aborted) {
        poke = new AbortController()
        const delayMs = await pass().catch((error: unknown) => {
          log.error({ error }, 'the certificates could not be looked after')
          return retryMs
        })
        await clock.sleep(delayMs, AbortSignal.any([signal, poke.signal]))
      }
      await following
    },
  }
}

/** Ready when every webhook's caBundle vouches for what is served. */
function stateOf(served: KeyPair | undefined, bundles: readonly CaBundle[], now: number): CertificateState {
  const certificate = served && parseCertificate(served.cert)
  if (!certificate) return { isReady: false, because: 'no certificate yet' }
  const distrusting = bundles.find(({ certificates }) => !isTrusted(certificate, certificates, now))
  if (distrusting) {
    return { isReady: false, because: `the caBundle of ${distrusting.webhook} does not vouch for what is served` }
  }
  return {
    isReady: true,
    because: bundles.length > 0 ? 'every caBundle vouches for it' : 'no webhook is registered yet',
  }
}
