import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { certificatesIn, isTrusted, isValidAt } from '../../certs/pem.ts'
import type { StoredState } from '../../certs/store.ts'
import { endpointName, type Endpoint, type Served } from './certs-served.ts'

/** What one webhook tells the API server: whom to call, and whom to trust. */
export interface Bundle {
  /** `ValidatingWebhookConfiguration sandgate`. */
  readonly configuration: string
  readonly webhook: string
  readonly endpoint: Endpoint
  readonly certificates: readonly X509Certificate[]
}

/** All that is known about the gate's certificates. */
export interface CertificateView {
  readonly now: number
  /** One for each webhook. */
  readonly bundles: readonly Bundle[]
  readonly served: readonly { readonly endpoint: Endpoint; readonly served: Served }[]
  /** Undefined when it may not be read. */
  readonly stored: StoredState | undefined
}

/** The shape of `-o json`, documented in docs/operations.md: fields may be added, none goes or changes its meaning. */
export interface CertificateReport {
  readonly agree: boolean
  /** What does not agree, a sentence each. */
  readonly problems: readonly string[]
  /** What could not be looked at. */
  readonly notes: readonly string[]
  readonly certificates: readonly CertificateLine[]
}

export interface CertificateLine {
  /** `served`, `secret` or `caBundle`. */
  readonly place: 'served' | 'secret' | 'caBundle'
  /** The endpoint, the part of the Secret, or the webhooks that have this bundle. */
  readonly where: string
  readonly subject: string
  readonly until: string
  /** SHA-256, the first sixteen digits. */
  readonly fingerprint: string
}

export function certificateReport(view: CertificateView): CertificateReport {
  const problems = [...bundleProblems(view), ...secretProblems(view), ...servedProblems(view)]
  return {
    agree: problems.length === 0,
    problems,
    notes: notesOn(view),
    certificates: [...servedLines(view), ...secretLines(view), ...bundleLines(view)],
  }
}

/** What the Secret says signs now, will sign, and has signed. */
function authoritiesIn({ stored }: CertificateView): { where: string; certificate: X509Certificate }[] {
  const { current, next, previous } = stored?.state ?? {}
  return Object.entries({ current, next, previous }).flatMap(([where, pair]) =>
    certificatesIn(pair?.cert ?? '').map((certificate) => ({ where, certificate })),
  )
}

function bundleProblems(view: CertificateView): string[] {
  const { bundles, now, stored } = view
  const [current] = certificatesIn(stored?.state.current?.cert ?? '')
  if (bundles.length === 0) return ['No webhook is registered, so that nothing is judged. Apply the install again.']
  return bundles.flatMap(({ webhook, certificates }) => {
    if (certificates.length === 0) return [`The caBundle of ${webhook} is empty: every call to it fails.`]
    return [
      ...(isLacking(certificates, current) ? [`The caBundle of ${webhook} lacks the Secret's current authority.`] : []),
      ...(certificates.some((each) => isValidAt(each, now)) ? [] : [`The caBundle of ${webhook} has expired.`]),
    ]
  })
}

function isLacking(bundle: readonly X509Certificate[], authority: X509Certificate | undefined): boolean {
  return authority !== undefined && !bundle.some((each) => each.fingerprint256 === authority.fingerprint256)
}

function secretProblems({ stored }: CertificateView): string[] {
  if (!stored?.secret) return []
  const isEmpty = !stored.state.current && stored.problems.length === 0
  return [
    ...stored.problems.map((problem) => `In the Secret, ${problem}.`),
    ...(isEmpty ? ['The Secret has no current authority.'] : []),
  ]
}

function servedProblems(view: CertificateView): string[] {
  const { served, bundles, now } = view
  return served.flatMap(({ endpoint, served: found }) => {
    if (found.kind !== 'served') return []
    const { certificate } = found
    const at = endpointName(endpoint)
    if (!isValidAt(certificate, now)) return [`The certificate served at ${at} is not valid at this time.`]
    const callers = bundles.filter((bundle) => endpointName(bundle.endpoint) === at)
    const distrusting = callers.filter(({ certificates }) => !isTrusted(certificate, certificates, now))
    const isNamed = isIP(endpoint.host) ? certificate.checkIP(endpoint.host) : certificate.checkHost(endpoint.host)
    return [
      ...(isNamed ? [] : [`The certificate served at ${at} is not for ${endpoint.host}.`]),
      ...(distrusting.length > 0
        ? [
            `What is served at ${at} is not trusted by the caBundle of ${listed(distrusting.map((each) => each.webhook))}.`,
          ]
        : []),
    ]
  })
}

function notesOn({ served, stored, bundles }: CertificateView): string[] {
  const [next] = certificatesIn(stored?.state.next?.cert ?? '')
  const isPublished = !bundles.some(({ certificates }) => isLacking(certificates, next))
  const unreachable = served.flatMap(({ endpoint, served: found }) =>
    found.kind === 'unreachable' ? [`What ${endpointName(endpoint)} serves cannot be seen: ${found.because}.`] : [],
  )
  return [
    ...unreachable,
    ...(stored ? [] : ['The Secret may not be read by this user.']),
    ...(stored && !stored.secret ? ['There is no Secret: sandgate does not manage the certificates.'] : []),
    ...(isPublished ? [] : ['The next authority is not in every caBundle yet.']),
  ]
}

function servedLines({ served }: CertificateView): CertificateLine[] {
  return served.flatMap(({ endpoint, served: found }) =>
    found.kind === 'served' ? [lineOf('served', endpointName(endpoint), found.certificate)] : [],
  )
}

function secretLines(view: CertificateView): CertificateLine[] {
  return authoritiesIn(view).map(({ where, certificate }) => lineOf('secret', where, certificate))
}

/** Webhooks of one configuration with the same bundle share its lines: as a rule that is all of them. */
function bundleLines({ bundles }: CertificateView): CertificateLine[] {
  const alike = Map.groupBy(bundles, ({ configuration, certificates }) =>
    [configuration, ...certificates.map(({ fingerprint256 }) => fingerprint256)].join(' '),
  )
  return [...alike.values()].flatMap((group) => {
    const [first] = group
    const where = group.length === 1 ? first?.webhook : `${first?.configuration} (${group.length} webhooks)`
    return (first?.certificates ?? []).map((certificate) => lineOf('caBundle', where ?? '', certificate))
  })
}

function lineOf(place: CertificateLine['place'], where: string, certificate: X509Certificate): CertificateLine {
  return {
    place,
    where,
    subject: certificate.subject.replaceAll('\n', ', '),
    until: certificate.validToDate.toISOString().replace(/\.\d+Z$/, 'Z'),
    fingerprint: certificate.fingerprint256.replaceAll(':', '').slice(0, 16).toLowerCase(),
  }
}

function listed(names: readonly string[]): string {
  const [first, ...others] = names
  return others.length === 0 ? `${first}` : `${first} and ${others.length} more`
}
