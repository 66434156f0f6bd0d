import t from 'tap'
import { createAuthority } from '../../certs/authority.ts'
import {
  createCaBundles,
  mutatingWebhookConfigurations as mutating,
  validatingWebhookConfigurations as validating,
  type WebhookConfiguration,
} from '../../certs/ca-bundle.ts'
import { certificatesIn } from '../../certs/pem.ts'
import { MemoryClient } from './memory-client.ts'

const now = Date.UTC(2026, 5, 1)
const { cert: one } = await createAuthority(now)
const { cert: two } = await createAuthority(now)
const names = [
  { resource: mutating, name: 'sandgate' },
  { resource: validating, name: 'sandgate' },
]

const configuration = (...bundles: (string | undefined)[]): WebhookConfiguration => ({
  metadata: { name: 'sandgate' },
  webhooks: bundles.map((bundle, i) => ({
    name: `w${i}.sandgate.dev`,
    timeoutSeconds: 7,
    clientConfig: {
      service: { name: 's', namespace: 'n' },
      ...(bundle !== undefined && { caBundle: Buffer.from(bundle).toString('base64') }),
    },
  })),
})

function setUp(bundles: (string | undefined)[] = [undefined, undefined]) {
  const client = new MemoryClient()
  client.put(mutating, configuration(...bundles))
  return { client, bundles: createCaBundles(client, names) }
}

const fingerprints = (pem: string) => certificatesIn(pem).map(({ fingerprint256 }) => fingerprint256)
const held = (client: MemoryClient) =>
  client
    .read(mutating, { name: 'sandgate' })
    ?.webhooks?.map(({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? '', 'base64').toString())

t.test('a certificate is added to every webhook in one patch, and nothing else is touched', async (t) => {
  const { client, bundles } = setUp()
  await bundles.add(one)
  t.strictSame(client.writes, ['patch mutatingwebhookconfigurations/sandgate'])
  const stored = client.read(mutating, { name: 'sandgate' })
  t.strictSame(held(client)?.map(fingerprints), [fingerprints(one), fingerprints(one)])
  const [pem = ''] = held(client) ?? []
  t.strictSame(stored?.webhooks, configuration(pem, pem).webhooks)
})

t.test('adding only ever adds: what is there stays, letter for letter', async (t) => {
  const note = `# ours\n${two.trim()}`
  const { client, bundles } = setUp([note, one])
  await bundles.add(one)
  const [first = '', second] = held(client) ?? []
  t.ok(first.startsWith(note))
  t.strictSame(fingerprints(first), fingerprints(two + one))
  t.equal(second, one)
})

t.test('nothing is written when nothing is missing', async (t) => {
  const { client, bundles } = setUp([one + two, two + one])
  await bundles.add(one + two)
  t.strictSame(client.writes, [])
})

t.test('a bundle of nonsense gets the certificate all the same', async (t) => {
  const { client, bundles } = setUp(['nonsense'])
  await bundles.add(one)
  t.strictSame(fingerprints(held(client)?.[0] ?? ''), fingerprints(one))
})

t.test("an administrator's edit between reading and writing is kept", async (t) => {
  const { client, bundles } = setUp([undefined])
  let edited = false
  client.before = (verb) => {
    if (verb !== 'patch' || edited) return
    edited = true
    const stored = configuration(two)
    Object.assign(stored.webhooks?.[0] ?? {}, { timeoutSeconds: 30 })
    client.put(mutating, stored)
  }
  await bundles.add(one)
  const webhook = client.read(mutating, { name: 'sandgate' })?.webhooks?.[0]
  t.match(webhook, { timeoutSeconds: 30 })
  t.strictSame(fingerprints(held(client)?.[0] ?? ''), fingerprints(two + one))
})

t.test('endless contention is reported, not repeated for ever', async (t) => {
  const { client, bundles } = setUp([undefined])
  client.before = (verb) => void (verb === 'patch' && client.put(mutating, configuration(undefined)))
  await t.rejects(bundles.add(one), { code: 'Conflict' })
})

t.test('removal takes out what it is given, and never the last certificate', async (t) => {
  const { client, bundles } = setUp([one + two, two])
  await bundles.remove(two)
  t.strictSame(held(client)?.map(fingerprints), [fingerprints(one), fingerprints(two)])
})

t.test('a configuration that does not exist is passed over', async (t) => {
  const { bundles } = setUp([one])
  const read = await bundles.read()
  t.strictSame(
    read.map(({ webhook }) => webhook),
    ['w0.sandgate.dev'],
  )
  await createCaBundles(new MemoryClient(), names).add(one)
})
