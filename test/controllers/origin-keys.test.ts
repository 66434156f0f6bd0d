import { pino } from 'pino'
import t from 'tap'
import { secrets, type Secret } from '../../src/api/core.ts'
import { createOriginKeyring, originKeysSecret, type OriginKeyring } from '../../src/controllers/origin-keys.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { kubeError, MemoryApi } from '../support/memory-api.ts'

const day = 24 * 60 * 60_000
const ref = { namespace: 'own', name: originKeysSecret }

function setUp() {
  const clock = new ManualClock()
  const api = new MemoryApi(() => clock.now())
  let made = 0
  const keyring = (): OriginKeyring =>
    createOriginKeyring({
      client: api,
      namespace: 'own',
      clock,
      log: pino({ level: 'silent' }),
      random: (size) => Buffer.alloc(size, ++made),
    })
  const empty = (data: Record<string, string> | null) => api.patch<Secret>(secrets, ref, { data }, { type: 'merge' })
  return { clock, api, keyring, empty }
}

t.test('the first replica makes a key, the others read it', async (t) => {
  const { api, keyring } = setUp()
  const [one, two] = [keyring(), keyring()]
  t.throws(() => one.keys())
  await one.load()
  await two.load()
  t.same(one.keys(), two.keys())
  t.equal(api.count('create', 'secrets'), 1)
  const before = one.keys()
  await one.load()
  t.equal(one.keys(), before, 'the same object as long as nothing changes')
})

t.test('of two replicas that make one at the same moment, the second takes that of the first', async (t) => {
  const { api, keyring } = setUp()
  const [one, two] = [keyring(), keyring()]
  await Promise.all([one.load(), two.load()])
  t.equal(api.count('create', 'secrets'), 2)
  t.same(one.keys(), two.keys())
})

t.test('a create whose reply was lost counts', async (t) => {
  const { api, keyring } = setUp()
  api.fault = ({ verb }) => (verb === 'create' ? 'lost' : undefined)
  const one = keyring()
  await one.load()
  const two = keyring()
  await two.load()
  t.same(one.keys(), two.keys())
})

t.test('a key is replaced after thirty days, and stays good for thirty more', async (t) => {
  const { clock, keyring } = setUp()
  const [one, two] = [keyring(), keyring()]
  await one.load()
  await two.load()
  const first = one.keys().current
  let told = 0
  one.onChange(() => told++)
  await clock.advance(30 * day - 1)
  await one.load()
  t.equal(one.keys().current.id, first.id)
  await clock.advance(1)
  await Promise.all([one.load(), two.load()])
  t.same(one.keys(), two.keys(), 'rotated once, by one of them')
  t.not(one.keys().current.id, first.id)
  t.equal(one.keys().previous?.id, first.id)
  t.equal(told, 1)
})

t.test('a Secret that was emptied, broken or removed by hand gets back what is known', async (t) => {
  const { api, keyring, empty } = setUp()
  const one = keyring()
  await one.load()
  const known = one.keys()
  const notBase64 = Buffer.from('{"id":"a.b"}').toString('base64')
  for (const data of [null, { current: 'x' }, { current: '' }, { current: notBase64 }]) {
    await empty(data)
    await one.load()
    t.equal(one.keys(), known)
    const another = keyring()
    await another.load()
    t.same(another.keys(), known)
  }
  await api.delete(secrets, ref)
  await one.load()
  t.equal(one.keys(), known)
  t.equal(api.all(secrets).length, 1)
})

t.test('a broken Secret that nobody knows is repaired with a new key', async (t) => {
  const { api, keyring } = setUp()
  await api.create(secrets, { metadata: ref, type: 'Opaque', data: { current: 'broken' } })
  const one = keyring()
  await one.load()
  const two = keyring()
  await two.load()
  t.same(one.keys(), two.keys())
})

t.test('a Secret that takes no change is made anew', async (t) => {
  const { api, keyring } = setUp()
  await api.create(secrets, { metadata: ref, type: 'Opaque', data: { current: 'broken' } })
  api.fault = ({ verb }) => (verb === 'replace' ? kubeError('Invalid') : undefined)
  const one = keyring()
  await one.load()
  const two = keyring()
  await two.load()
  t.same(one.keys(), two.keys())
})

t.test('a broken previous key is left out, the current one stays', async (t) => {
  const { keyring, empty } = setUp()
  const one = keyring()
  await one.load()
  await empty({ previous: 'broken' })
  const two = keyring()
  await two.load()
  t.same(two.keys(), one.keys())
})

t.test(
  'while it runs it follows what others write, survives an API server that fails, and ends with its signal',
  async (t) => {
    const { api, clock, keyring } = setUp()
    const [one, two] = [keyring(), keyring()]
    await one.load()
    await two.load()
    const stop = new AbortController()
    const running = one.run(stop.signal)
    await clock.advance(31 * day)
    const rotated = one.keys()
    api.fault = () => kubeError('Unreachable')
    await clock.advance(60_000)
    api.fault = () => undefined
    await two.load()
    t.same(two.keys(), rotated)
    stop.abort()
    await running
    t.equal(clock.pendingTimers, 0)
    await t.rejects(async () => {
      api.fault = () => kubeError('Forbidden')
      await keyring().load()
    })
  },
)
