import { pino } from 'pino'
import t from 'tap'
import { secrets, type Secret } from '../../src/api/core.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { authorityLifeMs, servingLifeMs } from '../../certs/authority.ts'
import {
  mutatingWebhookConfigurations as mutating,
  validatingWebhookConfigurations as validating,
  type WebhookConfiguration,
} from '../../certs/ca-bundle.ts'
import { createCertificateManager } from '../../certs/manager.ts'
import { certificatesIn, isMatchingPair, isTrusted, parseCertificate } from '../../certs/pem.ts'
import { retireMarginMs, settleMs } from '../../certs/rotation.ts'
import { MemoryClient } from './memory-client.ts'

const ref = { namespace: 'sandgate-system', name: 'sandgate-ca' }
const configurations = [mutating, validating].map((resource) => ({ resource, name: 'sandgate' }))
const registration = (): WebhookConfiguration => ({
  metadata: { name: 'sandgate' },
  webhooks: [
    { name: 'a.sandgate.dev', clientConfig: {} },
    { name: 'b.sandgate.dev', clientConfig: {} },
  ],
})

function setUp() {
  const client = new MemoryClient()
  const clock = new ManualClock()
  const register = () => configurations.forEach(({ resource }) => client.put(resource, registration()))
  register()
  const replica = (log = pino({ level: 'silent' })) =>
    createCertificateManager({
      client,
      clock,
      log,
      namespace: ref.namespace,
      secretName: ref.name,
      hosts: ['sandgate.sandgate-system.svc'],
      configurations,
    })
  return { client, clock, replica, register, bundles: () => bundlesIn(client) }
}
type Replica = ReturnType<ReturnType<typeof setUp>['replica']>

function bundlesIn(client: MemoryClient) {
  return configurations.flatMap(({ resource, name }) =>
    (client.read(resource, { name })?.webhooks ?? []).map(({ clientConfig }) =>
      certificatesIn(Buffer.from(clientConfig.caBundle ?? '', 'base64').toString()),
    ),
  )
}

/** Whether every API server, whichever bundle it holds, accepts what the replica serves. */
function isAccepted(client: MemoryClient, clock: ManualClock, { current }: Replica): boolean {
  const leaf = parseCertificate(current?.cert ?? '')
  return leaf !== undefined && bundlesIn(client).every((bundle) => isTrusted(leaf, bundle, clock.now()))
}

t.test('a fresh install is ready after one pass', async (t) => {
  const { client, clock, replica, bundles } = setUp()
  const one = replica()
  t.match(one.state, { isReady: false, because: 'no certificate yet' })
  const pairs: unknown[] = []
  one.onChange((pair) => pairs.push(pair))
  await one.pass()
  t.match(one.state, { isReady: true })
  t.ok(isAccepted(client, clock, one))
  t.strictSame(pairs, [one.current])
  t.ok(one.current && isMatchingPair(one.current))
  t.strictSame(
    bundles().map(({ length }) => length),
    [1, 1, 1, 1],
  )
  t.strictSame(
    one.expiries().map(({ what, at }) => [what, at - clock.now()]),
    [
      ['serving', servingLifeMs],
      ['authority', authorityLifeMs],
    ],
  )
})

t.test('replicas that start together agree on one authority, each with a certificate of its own', async (t) => {
  const { client, clock, replica, bundles } = setUp()
  const replicas = [replica(), replica(), replica()]
  await Promise.all(replicas.map((each) => each.pass()))
  for (const each of replicas) t.ok(isAccepted(client, clock, each))
  t.equal(new Set(replicas.map(({ current }) => current?.cert)).size, 3)
  t.equal(bundles()[0]?.length, 1)
})

t.test('a pass with nothing to do writes nothing', async (t) => {
  const { client, replica } = setUp()
  const one = replica()
  await one.pass()
  const written = client.writes.length
  const { current } = one
  await one.pass()
  t.equal(client.writes.length, written)
  t.equal(one.current, current)
})

t.test('a serving certificate is renewed at two thirds of its life, from the same authority', async (t) => {
  const { client, clock, replica, bundles } = setUp()
  const one = replica()
  await one.pass()
  const first = one.current
  clock.jump((servingLifeMs * 2) / 3 - 3_600_000)
  await one.pass()
  t.equal(one.current, first)
  clock.jump(3_600_000)
  await one.pass()
  t.not(one.current, first)
  t.ok(isAccepted(client, clock, one))
  t.equal(bundles()[0]?.length, 1)
})

t.test('the authority rotates without a moment in which a replica serves what a bundle does not hold', async (t) => {
  const { client, clock, replica, bundles } = setUp()
  const replicas = [replica(), replica()]
  const passAll = async () => {
    await Promise.all(replicas.map((each) => each.pass()))
    for (const each of replicas) t.ok(isAccepted(client, clock, each))
  }
  await passAll()
  const old = bundles()[0]?.[0]?.fingerprint256
  client.before = () => {
    // Whatever is being done: what is served at this moment is accepted by every bundle as it stands.
    for (const each of replicas) {
      const leaf = parseCertificate(each.current?.cert ?? '')
      const isAlive = leaf && clock.now() < leaf.validToDate.getTime()
      if (isAlive) t.ok(isAccepted(client, clock, each))
    }
  }
  clock.jump((authorityLifeMs * 2) / 3)
  await passAll()
  t.strictSame(new Set(bundles().map(({ length }) => length)), new Set([2]), 'old and new are published')
  const issuer = () => replicas.map(({ current }) => parseCertificate(current?.cert ?? '')?.issuer)
  const oldIssuer = issuer()[0]
  const late = replica()
  await late.pass()
  t.equal(parseCertificate(late.current?.cert ?? '')?.issuer, oldIssuer, 'one that starts now signs with the old')

  await clock.advance(settleMs - 1)
  await passAll()
  t.equal(client.read(secrets, ref)?.data?.['previous.crt'], undefined, 'not promoted a moment early')
  await clock.advance(1)
  await passAll()
  t.strictSame(new Set(bundles().map(({ length }) => length)), new Set([2]), 'the old one stays')
  clock.jump((servingLifeMs * 2) / 3)
  await passAll()
  t.not(issuer()[0], oldIssuer, 'renewals come from the new one')
  clock.jump(servingLifeMs / 3 + retireMarginMs + 60_000)
  await passAll()
  const left = bundles().map((bundle) => bundle.map(({ fingerprint256 }) => fingerprint256))
  t.strictSame(new Set(left.map(({ length }) => length)), new Set([1]), 'the old one is retired')
  t.notOk(left[0]?.includes(old ?? ''))
})

t.test('a Secret emptied by hand is restored from what a replica remembers', async (t) => {
  const { client, clock, replica, bundles } = setUp()
  const one = replica()
  await one.pass()
  const before = client.read(secrets, ref)?.data
  const { current } = one
  client.put<Secret>(secrets, { metadata: ref, type: 'Opaque', data: {} })
  await one.pass()
  t.strictSame(client.read(secrets, ref)?.data, before)
  t.equal(one.current, current, 'what is served stays')
  t.ok(isAccepted(client, clock, one))
  t.equal(bundles()[0]?.length, 1)
})

t.test('a Secret emptied while a replica starts: the new authority waits, the old one comes back', async (t) => {
  const { client, clock, replica } = setUp()
  const old = replica()
  await old.pass()
  const authority = client.read(secrets, ref)?.data?.['ca.crt']
  client.put<Secret>(secrets, { metadata: ref, type: 'Opaque', data: {} })
  const fresh = replica()
  await fresh.pass()
  t.equal(fresh.current, undefined, 'it does not sign with what is not settled')
  t.match(fresh.state, { isReady: false })
  t.ok(isAccepted(client, clock, old))
  await old.pass()
  await fresh.pass()
  t.equal(client.read(secrets, ref)?.data?.['ca.crt'], authority)
  t.ok(isAccepted(client, clock, fresh))
  t.match(fresh.state, { isReady: true })
})

t.test('a Secret lost with no replica left goes through publish and wait', async (t) => {
  const { client, clock, replica } = setUp()
  await replica().pass()
  client.objects.delete('secrets/sandgate-system/sandgate-ca')
  const one = replica()
  t.equal(await one.pass(), settleMs)
  t.equal(one.current, undefined)
  await clock.advance(settleMs)
  await one.pass()
  t.ok(isAccepted(client, clock, one))
})

t.test('manifests applied again lose their caBundles only until the next pass', async (t) => {
  const { client, clock, replica, register } = setUp()
  const one = replica()
  await one.pass()
  const { current } = one
  register()
  t.notOk(isAccepted(client, clock, one))
  await one.pass()
  t.ok(isAccepted(client, clock, one))
  t.equal(one.current, current)
})

t.test('a replica whose authority vanished from the bundles is not ready when it cannot put it back', async (t) => {
  const { client, replica, register } = setUp()
  const one = replica()
  await one.pass()
  register()
  client.before = (verb) => {
    if (verb === 'patch') throw new Error('forbidden')
  }
  await t.rejects(one.pass(), /forbidden/)
  t.match(one.state, { isReady: false, because: 'the caBundle of a.sandgate.dev does not vouch for what is served' })
})

t.test('before anything is registered a replica serves, and says that nothing is registered', async (t) => {
  const { client, replica } = setUp()
  client.objects.clear()
  const one = replica()
  await one.pass()
  t.ok(one.current)
  t.match(one.state, { isReady: true, because: 'no webhook is registered yet' })
})

t.test('run passes each minute, at once when a configuration changes, and soon after a failure', async (t) => {
  const { client, clock, replica, register } = setUp()
  const one = replica()
  const end = new AbortController()
  const ran = one.run(end.signal)
  const ready = Promise.withResolvers<unknown>()
  one.onChange(ready.resolve)
  await ready.promise
  const accepted = async () => {
    while (!isAccepted(client, clock, one)) await clock.advance(0)
  }
  await accepted()
  register()
  await accepted()
  t.pass('a configuration applied again is mended without waiting for the minute')

  client.before = () => {
    throw new Error('down')
  }
  client.put<Secret>(secrets, { metadata: ref, type: 'Opaque', data: {} })
  await clock.advance(60_000)
  t.strictSame(client.read(secrets, ref)?.data, {})
  client.before = () => undefined
  await clock.advance(5000)
  while (!client.read(secrets, ref)?.data?.['ca.crt']) await clock.advance(0)
  end.abort()
  await ran
  t.equal(clock.pendingTimers, 0)
})
