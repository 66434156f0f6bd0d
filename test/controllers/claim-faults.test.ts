import t from 'tap'
import { sandboxClaimKind, sandboxKind, type Sandbox } from '../../src/api/kinds.ts'
import { aClaimWorld, boundOnce, type ClaimWorld } from '../support/claim-world.ts'
import { kubeError, type Call, type Fault } from '../support/memory-api.ts'

const isAdoption = ({ verb, plural }: Call) => verb === 'patch' && plural === 'sandboxes'
const isStatus = ({ verb, subresource }: Call) => verb === 'patch' && subresource === 'status'
const isRead = ({ verb, plural }: Call) => verb === 'get' && plural === 'sandboxes'
const lost = 'lost'
const neverArrived = kubeError('OutcomeUnknown')

t.test('case 1: a status write that fails once leaves the claim with the sandbox it was given', async (t) => {
  for (const fault of [kubeError('ServerError'), kubeError('Conflict'), kubeError('Unreachable'), lost, neverArrived]) {
    const { world } = await aClaimWorld(t, { members: 2 })
    world.failNext(isStatus, fault as Awaited<ReturnType<Fault>>)
    await world.createClaim('a')
    await boundOnce(t, world, 'a')
    t.same(world.owned('a'), ['pool-1'])
    t.equal(world.stock().length, 1)
  }
})

t.test('case 2: six claims with env are all bound though every third status write is dropped', async (t) => {
  for (const fault of [lost, neverArrived, kubeError('ServerError')]) {
    const { world } = await aClaimWorld(t, { members: 0, template: { envVarsInjectionPolicy: 'Allowed' } })
    let writes = 0
    world.api.fault = (call) =>
      isStatus(call) && ++writes % 3 === 0 ? (fault as Awaited<ReturnType<Fault>>) : undefined
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const name of names) await world.createClaim(name, { env: [{ name: 'A', value: name }] })
    for (const name of names) await boundOnce(t, world, name)
    t.equal(world.sandboxes().length, 6)
    for (const name of names) t.not(world.ready(name)?.reason, 'ReconcilerError')
  }
})

t.test('an adoption whose reply is lost is repeated as it was, and nothing else is taken meanwhile', async (t) => {
  for (const fault of [lost, neverArrived] as const) {
    const { world, process } = await aClaimWorld(t, { members: 3 })
    process.caches.sandboxes.pause()
    world.failNext(isAdoption, fault, neverArrived, kubeError('TooManyRequests'), kubeError('ServerError'))
    await world.createClaim('a')
    await world.advance(10_000)
    const adoptions = world.api.calls.filter(isAdoption)
    t.ok(adoptions.length >= 4)
    for (const each of adoptions) t.same(each.body, adoptions[0]?.body)
    t.equal(world.stock().length, 2)
    process.caches.sandboxes.resume()
    await boundOnce(t, world, 'a')
  }
})

t.test('repeats grow apart, so that a server in trouble is not hammered', async (t) => {
  const { world } = await aClaimWorld(t)
  world.api.fault = (call) => (isAdoption(call) ? neverArrived : undefined)
  await world.createClaim('a')
  await world.advance(60_000)
  const { length } = world.api.calls
  t.ok(length > 10 && length < 25, `${length} attempts in a minute`)
  world.api.fault = () => undefined
  await world.advance(5_000)
  t.equal(world.boundTo('a'), 'pool-1')
})

t.test('an adoption that lost a race is settled by a live read', async (t) => {
  const outcomes: [string, (world: ClaimWorld) => Promise<unknown>, string][] = [
    ['still the pool’s: repeated on the fresh version', (world) => world.report('pool-1', 'True', {}), 'pool-1'],
    ['gone: the next candidate', (world) => world.remove(sandboxKind, 'pool-1'), 'pool-2'],
    [
      'someone else’s: the next candidate',
      (world) =>
        world.patch<Sandbox>(sandboxKind, 'pool-1', {
          metadata: { ownerReferences: null, labels: { 'agents.x-k8s.io/warm-pool-sandbox': null } },
        }),
      'pool-2',
    ],
  ]
  for (const [name, change, winner] of outcomes) {
    const { world, process } = await aClaimWorld(t, { members: 2 })
    process.caches.sandboxes.pause()
    await change(world)
    const made = await world.requests(() => world.createClaim('a'))
    t.equal(world.boundTo('a'), winner, name)
    t.same(made.slice(0, 3), ['patch sandboxes', 'get sandboxes', 'patch sandboxes'], 'in the same pass')
    process.caches.sandboxes.resume()
    await boundOnce(t, world, 'a')
  }
})

t.test('a race lost again and again is said to be one, and tried again', async (t) => {
  const { world } = await aClaimWorld(t, { members: 8 })
  world.api.fault = (call) => (isAdoption(call) ? kubeError('Conflict') : undefined)
  await world.createClaim('a')
  await world.settle()
  t.equal(world.ready('a')?.reason, 'AdoptionConflict')
  world.api.fault = () => undefined
  await world.advance(1_000)
  t.equal(world.ready('a')?.status, 'True')
})

t.test('a definite error gives the candidate back, says so on the claim, and is tried again', async (t) => {
  const { world } = await aClaimWorld(t, { members: 1 })
  world.failNext(isAdoption, kubeError('ServerError', 'a webhook is down'))
  await world.createClaim('a')
  await world.settle()
  t.match(world.ready('a'), { reason: 'ReconcilerError', message: 'a webhook is down' })
  await world.createClaim('b')
  await world.settle()
  t.equal(world.boundTo('b'), 'pool-1', 'who comes first has it')
  await boundOnce(t, world, 'a')
})

t.test('a fault that would change its words each time is still retried with growing pauses', async (t) => {
  const { world } = await aClaimWorld(t)
  let requests = 0
  world.api.fault = (call) => (isAdoption(call) ? kubeError('ServerError', `request ${++requests} failed`) : undefined)
  await world.createClaim('a')
  await world.advance(60_000)
  t.ok(requests < 20, `${requests} attempts in a minute`)
})

t.test('a claim that goes while its adoption is open gives the sandbox back', async (t) => {
  const { world } = await aClaimWorld(t)
  world.failNext(isAdoption, neverArrived)
  await world.createClaim('a')
  await world.settle()
  await world.remove(sandboxClaimKind, 'a')
  await world.createClaim('b')
  await world.settle()
  t.equal(world.boundTo('b'), 'pool-1')
})

t.test('our own adoption is believed without the cache, and after ten seconds looked at', async (t) => {
  const { world, process } = await aClaimWorld(t, { members: 2 })
  process.caches.sandboxes.pause()
  world.api.fault = (call) => (isStatus(call) ? kubeError('ServerError') : undefined)
  await world.createClaim('a')
  await world.advance(9_000)
  t.equal(world.api.calls.filter(isRead).length, 0)
  await world.advance(60_000)
  t.ok(world.api.calls.filter(isRead).length > 0)
  t.same(world.owned('a'), ['pool-1'], 'and no other was taken')
  world.api.fault = () => undefined
  await world.advance(60_000)
  t.equal(world.boundTo('a'), 'pool-1')
})

t.test(
  'of two sandboxes that two leaders took for one claim, one is published before the other is let go',
  async (t) => {
    const { world, pool } = await aClaimWorld(t, { members: 1 })
    const other = world.start()
    other.caches.sandboxes.pause()
    for (let i = 0; i < 2; i++) await world.addMember(pool, { node: 'node-2' })
    const released: string[] = []
    world.api.fault = ({ verb, name }) => {
      if (verb !== 'delete') return undefined
      t.equal(world.owned('a').length, 2)
      t.ok(world.boundTo('a') !== undefined && world.boundTo('a') !== name, 'a name is published, and not this one')
      released.push(name)
      return undefined
    }
    await world.createClaim('a')
    await world.settle()
    other.caches.sandboxes.resume()
    await boundOnce(t, world, 'a')
    t.equal(released.length, 1)
    t.ok(world.events.includes('DuplicateSandboxReleased a'))
  },
)

t.test('an adoption that a former leader sent takes nothing from a claim that has got it since', async (t) => {
  const { world, process } = await aClaimWorld(t)
  const held = Promise.withResolvers<undefined>()
  world.failNext(isAdoption, held.promise)
  await world.createClaim('a')
  await world.settle()
  const crashed = process.crash()
  await world.remove(sandboxClaimKind, 'a')
  world.start()
  await world.createClaim('b')
  await world.settle()
  t.same(world.owned('b'), ['pool-1'])
  held.resolve(undefined)
  await crashed
  t.same(world.owned('b'), ['pool-1'])
})

t.test(
  'an adoption whose reply comes after its sandbox has gone does not leave the claim ready for ever',
  async (t) => {
    const { world } = await aClaimWorld(t, { members: 2 })
    const { api } = world
    const patch = api.patch.bind(api)
    api.patch = async (resource, ref, body, options) => {
      const answer = await patch(resource, ref, body, options)
      if (ref.name === 'pool-1') await world.remove(sandboxKind, 'pool-1')
      return answer
    }
    await world.createClaim('a')
    await world.advance(60_000)
    t.equal(world.boundTo('a'), 'pool-2')
  },
)
