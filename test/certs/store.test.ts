import t from 'tap'
import { secrets, type Secret } from '../../src/api/core.ts'
import { authorityLifeMs, createAuthority, signServing } from '../../certs/authority.ts'
import { createAuthorityStore } from '../../certs/store.ts'
import { MemoryClient } from './memory-client.ts'

const now = Date.UTC(2026, 5, 1)
const ref = { namespace: 'ns', name: 'ca' }
const current = await createAuthority(now)
const next = await createAuthority(now)
const previous = { cert: next.cert, retireAt: now + 1000 }

function setUp() {
  const client = new MemoryClient()
  return { client, store: createAuthorityStore(client, ref.namespace, ref.name) }
}

t.test('what is written is read back, in one Secret', async (t) => {
  const { client, store } = setUp()
  const before = await store.read(now)
  t.strictSame(before.state, {})
  t.ok(await store.write({ current, next, previous }, before))
  const { state, problems } = await store.read(now)
  t.strictSame(state, { current, next, previous })
  t.strictSame(problems, [])
  t.strictSame(client.writes, ['create secrets/ns/ca'])
})

t.test('of two replicas that create the Secret one loses, and reads what the other wrote', async (t) => {
  const { store } = setUp()
  const basis = await store.read(now)
  const outcomes = await Promise.all([store.write({ current }, basis), store.write({ current: next }, basis)])
  t.equal(outcomes.filter(Boolean).length, 1)
  t.strictSame((await store.read(now)).state, { current: outcomes[0] ? current : next })
})

t.test('a write on an old reading changes nothing', async (t) => {
  const { store } = setUp()
  await store.write({ current }, await store.read(now))
  const basis = await store.read(now)
  t.ok(await store.write({ current, next }, basis))
  t.notOk(await store.write({ current: next }, basis))
  t.strictSame((await store.read(now)).state, { current, next })
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const good = { 'ca.crt': base64(current.cert), 'ca.key': base64(current.key) }
const leaf = await signServing(current, ['x'], now)
const broken: [string, Record<string, string> | undefined, RegExp | undefined][] = [
  ['emptied', {}, undefined],
  ['without data', undefined, undefined],
  ['half-written', { 'ca.crt': good['ca.crt'] }, /does not match/],
  ['without its certificate', { 'ca.key': good['ca.key'] }, /cannot be read/],
  ['with garbage', { 'ca.crt': base64('nonsense'), 'ca.key': '***' }, /cannot be read/],
  ['with a key that does not match', { ...good, 'ca.key': base64(next.key) }, /does not match/],
  ['with a leaf as the authority', { 'ca.crt': base64(leaf.cert), 'ca.key': base64(leaf.key) }, /not an authority/],
]
for (const [what, data, problem] of broken) {
  t.test(`a Secret ${what} reads as one without an authority, and can be written`, async (t) => {
    const { client, store } = setUp()
    client.put<Secret>(secrets, { metadata: ref, type: 'Opaque', ...(data && { data }) })
    const found = await store.read(now)
    t.strictSame(found.state, {})
    t.equal(found.problems.length, problem ? 1 : 0)
    if (problem) t.match(found.problems[0], problem)
    t.ok(await store.write({ current }, found))
    t.strictSame((await store.read(now)).state, { current })
  })
}

t.test('an expired authority counts as none', async (t) => {
  const { store } = setUp()
  await store.write({ current }, await store.read(now))
  const { state, problems } = await store.read(now + authorityLifeMs)
  t.strictSame(state, {})
  t.match(problems[0], /not valid at this time/)
})

t.test('a Secret of another type or an immutable one is made anew', async (t) => {
  for (const odd of [{ type: 'kubernetes.io/tls' }, { type: 'Opaque', immutable: true }]) {
    const { client, store } = setUp()
    client.put<Secret>(secrets, { metadata: ref, ...odd })
    t.ok(await store.write({ current }, await store.read(now)))
    t.strictSame(client.writes, ['delete secrets/ns/ca', 'create secrets/ns/ca'])
    t.equal(client.read(secrets, ref)?.type, 'Opaque')
  }
})

t.test("other people's keys, labels and annotations in the Secret stay", async (t) => {
  const { client, store } = setUp()
  client.put<Secret>(secrets, {
    metadata: { ...ref, labels: { team: 'x' } },
    type: 'Opaque',
    data: { note: base64('hi'), 'next.crt': base64('old') },
  })
  await store.write({ current }, await store.read(now))
  const secret = client.read(secrets, ref)
  t.strictSame(secret?.metadata.labels, { team: 'x' })
  t.strictSame(Object.keys(secret?.data ?? {}).toSorted(), ['ca.crt', 'ca.key', 'note'])
})

t.test('a server that does not answer is an error, not an empty Secret', async (t) => {
  const { client, store } = setUp()
  client.before = () => {
    throw new Error('down')
  }
  await t.rejects(store.read(now), /down/)
})
