import t from 'tap'
import { nameHash } from '../../src/api/hash.ts'
import { sandboxClaimKind, sandboxKind, type Sandbox } from '../../src/api/kinds.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { aClaimWorld, ClaimWorld } from '../support/claim-world.ts'
import { kubeError, type Call, type Fault } from '../support/memory-api.ts'
import { noon } from '../support/pool-fixtures.ts'

const isAdoption = ({ verb, plural }: Call) => verb === 'patch' && plural === 'sandboxes'
const isCreate = ({ verb, plural }: Call) => verb === 'create' && plural === 'sandboxes'
const isStatus = ({ verb, subresource }: Call) => verb === 'patch' && subresource === 'status'
const isRead = ({ verb, plural }: Call) => verb === 'get' && plural === 'sandboxes'
const lost = 'lost'
const neverArrived = kubeError('OutcomeUnknown')
/** Faults in this order, whatever the request; `-` lets one pass. */
const inOrder = (...faults: (Awaited<ReturnType<Fault>> | '-')[]): Fault => {
  return () => {
    const fault = faults.shift()
    return fault === '-' ? undefined : fault
  }
}

async function boundOnce(t: Tap, world: ClaimWorld, claim: string): Promise<void> {
  await world.advance(60_000)
  t.equal(world.owned(claim).length, 1, 'it owns one sandbox')
  t.equal(world.boundTo(claim), world.owned(claim)[0], 'which is the one in its status')
}
type Tap = Pick<typeof t, 'equal'>

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

t.test('a cold start whose reply is lost is repeated, found to be there, and not joined by a warm one', async (t) => {
  for (const fault of [lost, neverArrived] as const) {
    const { world, pool, process } = await aClaimWorld(t, { members: 0 })
    process.caches.sandboxes.pause()
    world.api.fault = inOrder(fault, kubeError('ServerError'), '-', kubeError('ServerError'))
    await world.createClaim('a')
    await world.settle()
    process.caches.sandboxes.resume()
    await world.addMember(pool)
    await boundOnce(t, world, 'a')
    t.same(world.owned('a'), ['a'])
    t.equal(world.stock().length, 1)
  }
})

t.test('a repeated cold start that is told of a full quota is the one that filled it', async (t) => {
  const { world, process } = await aClaimWorld(t, { members: 0 })
  process.caches.sandboxes.pause()
  world.failNext(isCreate, lost, kubeError('Forbidden', 'exceeded quota: q, requested: 1, used: 1, limited: 1'))
  await world.createClaim('a')
  await world.advance(200)
  t.equal(world.boundTo('a'), 'a')
  process.caches.sandboxes.resume()
  await boundOnce(t, world, 'a')
})

t.test('a sandbox that another webhook changes on its way in is the claim’s all the same', async (t) => {
  const { world } = await aClaimWorld(t, { members: 0 })
  world.api.mutate = (object) => {
    const spec = object.spec as Sandbox['spec'] | undefined
    if (spec?.podTemplate === undefined) return object
    const podSpec = { ...spec.podTemplate.spec, priorityClassName: 'agents' }
    return { ...object, spec: { ...spec, podTemplate: { ...spec.podTemplate, spec: podSpec } } }
  }
  // The signature for what was stored is lost on the way, too.
  world.api.fault = inOrder('-', kubeError('ServerError'))
  await world.createClaim('a')
  await boundOnce(t, world, 'a')
})

t.test('case 21: a quota is named, without giving up, and its release is noticed', async (t) => {
  const { world } = await aClaimWorld(t, { members: 0 })
  const message = 'sandboxes is forbidden: exceeded quota: two, requested: 1, used: 2, limited: 2'
  world.api.fault = (call) => (isCreate(call) ? kubeError('Forbidden', message) : undefined)
  await world.createClaim('a')
  await world.settle()
  t.match(world.ready('a'), { reason: 'QuotaExceeded', message: /exceeded quota: two/ })
  world.api.fault = () => undefined
  await world.advance(10_000)
  t.equal(world.boundTo('a'), 'a')

  await world.report('a', 'False', {}, 'QuotaExceeded')
  await world.settle()
  t.equal(world.ready('a')?.reason, 'QuotaExceeded', 'of the Pod: forwarded from the sandbox')
})

t.test('a namespace’s own quota refuses the youngest, and who leaves makes room', async (t) => {
  const { world } = await aClaimWorld(t, { members: 5 })
  world.config = { ...defaultConfig, claims: { ...defaultConfig.claims, maxPerNamespace: 2 } }
  for (const name of ['a', 'b', 'c', 'd']) await world.createClaim(name)
  await world.settle()
  t.same(['a', 'b', 'c', 'd'].map(world.boundTo.bind(world)), ['pool-1', 'pool-2', undefined, undefined])
  t.match(world.ready('c'), { reason: 'QuotaExceeded', message: /claim\/quota/ })
  t.same(await world.requests(() => world.advance(10_000)), [], 'looked at, with nothing to say')
  await world.remove(sandboxClaimKind, 'a')
  await world.settle()
  t.same([world.boundTo('c'), world.boundTo('d')], ['pool-3', undefined])
})

t.test('a claim beyond the longest lifetime is refused', async (t) => {
  const { world } = await aClaimWorld(t)
  world.config = { ...defaultConfig, claims: { ...defaultConfig.claims, maxLifetime: '1h' } }
  await world.createClaim('a', { lifecycle: { shutdownTime: new Date(noon + 2 * 3_600_000).toISOString() } })
  await world.settle()
  t.match(world.ready('a'), { reason: 'InvalidMetadata', message: /claim\/expiry/ })
  t.equal(world.stock().length, 1)
})

t.test(
  'a cold start needs the claim’s name: a squatter is named, stock helps, its predecessor’s is waited for',
  async (t) => {
    const { world, pool } = await aClaimWorld(t, { members: 0 })
    await world.put(sandboxKind, {
      metadata: { name: 'a', namespace: 'ns' },
      spec: { podTemplate: { spec: { containers: [] } } },
    })
    await world.createClaim('a')
    await world.settle()
    t.equal(world.ready('a')?.reason, 'SandboxNameTaken')
    await world.addMember(pool)
    await world.settle()
    t.equal(world.boundTo('a'), 'pool-1', 'woken by stock')

    await world.createClaim('b')
    await world.settle()
    await world.patch(sandboxKind, 'b', { metadata: { finalizers: ['example.com/hold'] } })
    await world.remove(sandboxClaimKind, 'b')
    await world.createClaim('b')
    await world.settle()
    t.equal(world.boundTo('b'), undefined)
    await world.patch(sandboxKind, 'b', { metadata: { finalizers: null } })
    t.ok(
      (await world.requests(() => world.remove(sandboxKind, 'b'))).includes('create sandboxes'),
      'woken by its deletion',
    )
    await boundOnce(t, world, 'b')
  },
)

t.test('a cold start whose name hashes like another sandbox’s is not made', async (t) => {
  const [one, other] = ['c12b5fc790', 'c8f241edcf']
  t.equal(nameHash(one), nameHash(other))
  const { world } = await aClaimWorld(t, { members: 0 })
  await world.createClaim(one)
  await world.settle()
  await world.createClaim(other)
  await world.settle()
  t.equal(world.boundTo(one), one)
  t.match(world.ready(other), { reason: 'SandboxNameTaken', message: /c12b5fc790/ })
  await world.remove(sandboxClaimKind, one)
  await world.collectGarbage()
  await world.advance(30_000)
  t.equal(world.boundTo(other), other)
})

t.test('a template that breaks a rule is not made into a sandbox', async (t) => {
  const podSpec = { containers: [{ name: 'main', image: 'x', securityContext: { privileged: true } }] }
  const { world } = await aClaimWorld(t, { members: 0, template: { podTemplate: { spec: podSpec } } })
  await world.createClaim('a')
  await world.settle()
  t.match(world.ready('a'), { reason: 'ReconcilerError', message: /template\/pod-security/ })
  t.same(world.sandboxes(), [])
})

t.test('a namespace that is being deleted, or has gone, ends the matter without a word', async (t) => {
  const ending = kubeError('Forbidden', 'it is being terminated', 'NamespaceTerminating')
  for (const fault of [ending, kubeError('NotFound')]) {
    const { world } = await aClaimWorld(t, { members: 0 })
    world.api.fault = (call) => (isCreate(call) ? fault : undefined)
    t.same(await world.requests(() => world.createClaim('a')), ['create sandboxes'])
    t.equal(world.ready('a'), undefined)
  }
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

t.test('a sandbox that was made anew under its name is not taken for a duplicate of the one before it', async (t) => {
  const { world, process } = await aClaimWorld(t, { members: 0 })
  process.caches.sandboxes.pause()
  world.failNext(isCreate, lost)
  await world.createClaim('a')
  await world.settle()
  await world.remove(sandboxKind, 'a')
  process.caches.sandboxes.deliver(1)
  await world.advance(5_000)
  t.equal(world.api.calls.filter(({ verb }) => verb === 'delete').length, 0)
  process.caches.sandboxes.resume()
  await boundOnce(t, world, 'a')
})
