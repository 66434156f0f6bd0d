import t from 'tap'
import { nameHash } from '../../src/api/hash.ts'
import { sandboxClaimKind, sandboxKind, type Sandbox } from '../../src/api/kinds.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { aClaimWorld, boundOnce } from '../support/claim-world.ts'
import { kubeError, type Call, type Fault } from '../support/memory-api.ts'
import { noon } from '../support/pool-fixtures.ts'

const isCreate = ({ verb, plural }: Call) => verb === 'create' && plural === 'sandboxes'
const lost = 'lost'
const neverArrived = kubeError('OutcomeUnknown')
/** Faults in this order, whatever the request; `-` lets one pass. */
const inOrder = (...faults: (Awaited<ReturnType<Fault>> | '-')[]): Fault => {
  return () => {
    const fault = faults.shift()
    return fault === '-' ? undefined : fault
  }
}

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
  const full = kubeError('Forbidden', 'exceeded quota: q, requested: 1, used: 1, limited: 1')
  let creates = 0
  world.api.fault = (call) => {
    if (!isCreate(call)) return undefined
    return ++creates === 1 ? lost : full
  }
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

t.test('who waits for a squatted name is woken when it becomes free', async (t) => {
  const { world } = await aClaimWorld(t, { members: 0 })
  const squatter = { metadata: { name: 'a', namespace: 'ns' }, spec: { podTemplate: { spec: { containers: [] } } } }
  await world.put(sandboxKind, squatter)
  await world.createClaim('a')
  await world.settle()
  await world.remove(sandboxKind, 'a')
  await world.settle()
  t.equal(world.boundTo('a'), 'a')
})
