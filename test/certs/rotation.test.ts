import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { authorityLifeMs, createAuthority, servingLifeMs, signServing } from '../../certs/authority.ts'
import { certificatesIn, type KeyPair } from '../../certs/pem.ts'
import { isServingDue, planRotation, retireMarginMs, settleMs, type RotationView } from '../../certs/rotation.ts'

const now = Math.floor(Date.UTC(2026, 5, 1) / 1000) * 1000
const one = await createAuthority(now)
const two = await createAuthority(now)
const three = await createAuthority(now)
const ageingAt = now + (authorityLifeMs * 2) / 3

const bundle = (...pairs: KeyPair[]) =>
  new Set(pairs.flatMap(({ cert }) => certificatesIn(cert)).map(({ fingerprint256 }) => fingerprint256))
const plan = (view: Partial<RotationView>) =>
  planRotation({ now, stored: {}, remembered: {}, bundles: [], nextPublishedForMs: 0, ...view })

t.test('1. a lost authority is put back by a replica that remembers it', async (t) => {
  const previous = { cert: three.cert, retireAt: now + 1 }
  t.match(plan({ stored: {}, remembered: { current: one, previous } }), {
    kind: 'write',
    state: { current: one, previous },
    because: 'restored',
  })
  const midway = plan({ stored: { next: two }, remembered: { current: one } })
  t.match(
    midway,
    { kind: 'write', state: { current: one, next: two } },
    'what another replica introduced meanwhile stays',
  )
})

t.test('1. an authority in the Secret stands, whatever a replica remembers', async (t) => {
  t.equal(plan({ stored: { current: two }, remembered: { current: one }, bundles: [bundle(two)] }).kind, 'settled')
})

t.test('1. an expired memory is not put back', async (t) => {
  const view = { now: now + authorityLifeMs, remembered: { current: one } }
  t.match(plan(view), { kind: 'introduce', because: 'there is none' })
})

t.test('2. with nothing stored and nothing remembered an authority is introduced', async (t) => {
  t.match(plan({}), { kind: 'introduce', because: 'there is none' })
})

t.test('3. an authority past two thirds of its life gets a successor, once', async (t) => {
  const bundles = [bundle(one, two)]
  t.equal(plan({ now: ageingAt - 3_600_000, stored: { current: one }, bundles }).kind, 'settled')
  t.match(plan({ now: ageingAt, stored: { current: one }, bundles }), {
    kind: 'introduce',
    because: 'the current one ages',
  })
  t.equal(plan({ now: ageingAt, stored: { current: one, next: two }, bundles }).kind, 'wait')
})

t.test('4. whatever is in use and missing from one bundle is published', async (t) => {
  const stored = { current: one, next: two, previous: { cert: three.cert, retireAt: now + 1 } }
  const certificates = [one.cert, two.cert, three.cert]
  t.strictSame(plan({ stored, bundles: [bundle(one, two, three), bundle(one, two)] }), {
    kind: 'publish',
    certificates,
  })
  t.strictSame(plan({ stored, bundles: [bundle()] }), { kind: 'publish', certificates })
  t.equal(plan({ stored, bundles: [bundle(one, two, three)] }).kind, 'wait')
})

t.test('5. the successor waits until it has been published for a minute, then takes over', async (t) => {
  const stored = { current: one, next: two }
  const bundles = [bundle(one, two)]
  t.strictSame(plan({ stored, bundles, nextPublishedForMs: 20_000 }), { kind: 'wait', forMs: settleMs - 20_000 })
  t.strictSame(plan({ stored, bundles, nextPublishedForMs: settleMs }), {
    kind: 'write',
    state: { current: two, previous: { cert: one.cert, retireAt: now + servingLifeMs + retireMarginMs } },
    because: 'promoted',
  })
})

t.test('5. a promotion keeps what is still to be retired', async (t) => {
  const stored = { current: one, next: two, previous: { cert: three.cert, retireAt: now + 1 } }
  const promoted = plan({ stored, bundles: [bundle(one, two, three)], nextPublishedForMs: settleMs })
  t.match(promoted, { state: { current: two, previous: { cert: one.cert + three.cert } } })
})

t.test('5. on a fresh install the first authority serves at once', async (t) => {
  const write = { kind: 'write', state: { current: one }, because: 'promoted' }
  t.strictSame(plan({ stored: { next: one }, bundles: [bundle(one), bundle(one)] }), write)
  t.strictSame(plan({ stored: { next: one }, bundles: [] }), write)
})

t.test('5. with another authority in a bundle somebody may serve with it, so the first waits too', async (t) => {
  t.equal(plan({ stored: { next: one }, bundles: [bundle(one), bundle(one, two)] }).kind, 'wait')
  const previous = { cert: two.cert, retireAt: now + 1 }
  t.equal(plan({ stored: { next: one, previous }, bundles: [bundle(one, two)] }).kind, 'wait')
  t.equal(plan({ stored: { current: two, next: one }, bundles: [] }).kind, 'wait')
})

t.test('6. former authorities are retired when all they signed has expired, and are not published again', async (t) => {
  const stored = { current: one, previous: { cert: two.cert, retireAt: now } }
  t.equal(plan({ now: now - 1, stored, bundles: [bundle(one, two)] }).kind, 'settled')
  const retire = { kind: 'retire', certificates: [two.cert], state: { current: one } }
  t.strictSame(plan({ stored, bundles: [bundle(one, two)] }), retire)
  t.strictSame(plan({ stored, bundles: [bundle(one)] }), retire)
})

t.test(
  'a serving certificate is due after two thirds of its life, or when a bundle does not vouch for it',
  async (t) => {
    const leaf = new X509Certificate((await signServing(one, ['x'], now)).cert)
    const trusting = [certificatesIn(one.cert + two.cert)]
    t.notOk(isServingDue(leaf, trusting, now))
    t.notOk(isServingDue(leaf, trusting, now + (servingLifeMs * 2) / 3 - 3_600_000))
    t.ok(isServingDue(leaf, trusting, now + (servingLifeMs * 2) / 3))
    t.ok(isServingDue(leaf, [...trusting, certificatesIn(two.cert)], now))
    t.notOk(isServingDue(leaf, [], now), 'with no webhook registered there is nobody to doubt it')
  },
)
