import { createServer } from 'node:tls'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { createAuthority, signServing } from '../../certs/authority.ts'
import type { StoredState } from '../../certs/store.ts'
import { certificateReport, type CertificateView } from '../../src/cli/certs-report.ts'
import { servedAt } from '../../src/cli/certs-served.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { freePort } from './sandgate.ts'

const now = Date.UTC(2026, 5, 1)
const year = 366 * 86_400_000
const [authority, next, stranger] = await Promise.all([
  createAuthority(now),
  createAuthority(now),
  createAuthority(now),
])
const leaf = await signServing(authority, ['sandgate-webhook.sandgate-system.svc'], now)
const endpoint = { host: 'sandgate-webhook.sandgate-system.svc', port: 443 }

type Pair = typeof authority
const certificates = (...pairs: Pair[]) => pairs.map(({ cert }) => new X509Certificate(cert))
const stored = (state: StoredState['state'], problems: string[] = []): StoredState => ({
  state,
  problems,
  secret: { metadata: { name: 'sandgate-certificates' } },
})
const bundle = (webhook: string, ...trusted: Pair[]) => ({
  configuration: 'ValidatingWebhookConfiguration sandgate',
  webhook,
  endpoint,
  certificates: certificates(...trusted),
})
const view = (change: Partial<CertificateView> = {}): CertificateView => ({
  now,
  bundles: [bundle('claims.validate', authority), bundle('pools.validate', authority)],
  served: [{ endpoint, served: { kind: 'served', certificate: new X509Certificate(leaf.cert) } }],
  stored: stored({ current: authority }),
  ...change,
})

t.test('what belongs together agrees, and bundles that are alike share a line', async (t) => {
  const report = certificateReport(view())
  t.same(report.problems, [])
  t.ok(report.agree)
  t.match(report.certificates, [
    { place: 'served', where: 'sandgate-webhook.sandgate-system.svc:443', subject: /CN=/ },
    { place: 'secret', where: 'current', until: /^2027-0\d-\d\dT/ },
    { place: 'caBundle', where: 'ValidatingWebhookConfiguration sandgate (2 webhooks)' },
  ])
  t.equal(report.certificates.length, 3)
})

t.test('a rotation under way agrees at each of its steps', async (t) => {
  const both = [bundle('claims.validate', authority, next)]
  const introduced = certificateReport(view({ stored: stored({ current: authority, next }) }))
  t.ok(introduced.agree)
  t.same(introduced.notes, ['The next authority is not in every caBundle yet.'])
  t.same(certificateReport(view({ bundles: both, stored: stored({ current: authority, next }) })).notes, [])
  const previous = { cert: authority.cert, retireAt: now + year }
  t.ok(certificateReport(view({ bundles: both, stored: stored({ current: next, previous }) })).agree)
})

const disagreements: readonly [string, Partial<CertificateView>, RegExp][] = [
  ['no webhook at all', { bundles: [] }, /No webhook is registered/],
  ['an empty caBundle', { bundles: [bundle('claims.validate')] }, /claims\.validate is empty/],
  ['a caBundle of someone else', { bundles: [bundle('claims.validate', stranger)] }, /claims\.validate lacks/],
  ['a served certificate of someone else', { bundles: [bundle('claims.validate', stranger)] }, /is not trusted/],
  ['expired authorities', { now: now + year }, /has expired/],
  ['an expired certificate', { now: now + 60 * 86_400_000 }, /not valid at this time/],
  [
    'a broken Secret',
    { stored: stored({}, ['current: the key does not match the certificate']) },
    /In the Secret, current/,
  ],
  ['an empty Secret', { stored: stored({}) }, /has no current authority/],
  [
    'a certificate for another name',
    {
      bundles: [{ ...bundle('claims.validate', authority), endpoint: { host: 'elsewhere.svc', port: 443 } }],
      served: [
        {
          endpoint: { host: 'elsewhere.svc', port: 443 },
          served: { kind: 'served', certificate: new X509Certificate(leaf.cert) },
        },
      ],
    },
    /is not for elsewhere\.svc/,
  ],
]
for (const [what, change, problem] of disagreements) {
  t.test(`${what} is a disagreement`, async (t) => {
    const { agree, problems } = certificateReport(view(change))
    t.notOk(agree)
    t.match(problems.join('\n'), problem)
  })
}

t.test('what cannot be seen is said, and no disagreement', async (t) => {
  const unreachable = { kind: 'unreachable', because: 'nothing listens there' } as const
  const { agree, notes } = certificateReport(view({ stored: undefined, served: [{ endpoint, served: unreachable }] }))
  t.ok(agree)
  t.match(notes, [/443 serves cannot be seen: nothing listens there/, /may not be read/])
  const unmanaged = certificateReport(view({ stored: { state: {}, problems: [], secret: undefined } }))
  t.ok(unmanaged.agree)
  t.match(unmanaged.notes, [/There is no Secret/])
})

t.test('a certificate is seen whoever signed it', async (t) => {
  const server = createServer({ key: leaf.key, cert: leaf.cert }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const served = await servedAt({ host: '127.0.0.1', port }, systemClock)
  t.equal(served.kind === 'served' && served.certificate.fingerprint256, new X509Certificate(leaf.cert).fingerprint256)
})

t.test('where nobody listens, and where nobody is, it says so', async (t) => {
  t.match(await servedAt({ host: '127.0.0.1', port: await freePort() }, systemClock), {
    kind: 'unreachable',
    because: 'nothing listens there',
  })
  t.match(await servedAt({ host: 'sandgate-webhook.sandgate-system.svc.invalid', port: 443 }, systemClock), {
    kind: 'unreachable',
    because: /not known here|no answer/,
  })
})
