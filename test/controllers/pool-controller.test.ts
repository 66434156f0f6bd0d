import t from 'tap'
import { poolHash } from '../../src/api/hash.ts'
import {
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type SandboxWarmPool,
} from '../../src/api/kinds.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { verifyOrigin } from '../../src/planning/origin.ts'
import { poolOwner, type Pool } from '../../src/planning/pools.ts'
import { aSet, aTemplate, aWarmPool, minute, podSpec, second } from '../support/pool-fixtures.ts'
import { aWorld, aFullPool, conditionOf, PoolWorld } from '../support/pool-world.ts'

t.test('a warm pool fills, and its members are what kinds.md says', async (t) => {
  const world = await aWorld(t)
  const pool = await world.createPool(aWarmPool())
  await world.settle()
  t.equal(world.stock().length, 3)
  const [sandbox] = world.stock()
  t.match(sandbox?.metadata, {
    name: /^pool-[a-z0-9]{10}$/,
    ownerReferences: [poolOwner(pool)],
    labels: { [labels.launchType]: 'warm' },
    annotations: { [annotations.podName]: sandbox?.metadata.name, [annotations.templateRef]: 'python' },
  })
  t.equal(sandbox && verifyOrigin(world.keys, sandbox, pool.metadata.uid ?? ''), 'valid')
  t.match(world.stored(pool).status, { replicas: 3, readyReplicas: 0 })
  await world.makeAllReady()
  t.match(world.stored(pool).status, { replicas: 3, readyReplicas: 3 })
  t.match(conditionOf(world.stored(pool), 'Available'), { status: 'True' })
  t.ok(world.events.includes('Normal SandboxesCreated Created 3 sandboxes.'))
})

t.test(
  'a claimed sandbox is replaced at once, and the status shows the pool one short before it is full again',
  async (t) => {
    const { world, pool } = await aFullPool(t, aSet())
    const seen: (number | undefined)[] = []
    world.informers.sets.onChange(({ kind, object }) => kind === 'updated' && seen.push(object.status?.replicas))
    const [sandbox] = world.stock()
    if (sandbox) await world.claim(sandbox)
    await world.settle()
    t.equal(world.stock().length, 3)
    t.match(world.stored(pool).status, { replicas: 3, availableReplicas: 2 })
    t.same(seen, [2, 3])
  },
)

t.test('less stock is published at once, however short ago the last status was written', async (t) => {
  const { world, pool } = await aFullPool(t, aSet())
  const [first, next] = world.stock()
  await world.claim(first!)
  await world.settle(15)
  t.match(world.stored(pool).status, { availableReplicas: 2 })
  await world.claim(next!)
  await world.settle(15)
  t.match(world.stored(pool).status, { availableReplicas: 1 })
})

t.test('a pool that fills writes its status a few times, not for each sandbox', async (t) => {
  const world = await aWorld(t)
  const pool = await world.createPool(aWarmPool({ replicas: 40 }))
  await world.settle()
  for (const sandbox of world.stock()) {
    await world.makeReady(sandbox)
    await world.settle(15)
  }
  await world.settle()
  t.match(world.stored(pool).status, { readyReplicas: 40 })
  t.ok(world.api.count('patch', 'sandboxwarmpools') <= 6)
})

t.test('a status that was written is not written again because its cache lags', async (t) => {
  const { world } = await aFullPool(t, aWarmPool())
  world.informers.warmPools.pause()
  const { namespace = '', name = '' } = world.stock()[0]!.metadata
  const suspend = { spec: { operatingMode: 'Suspended' } }
  await world.api.patch(sandboxKind, { namespace, name }, suspend, { type: 'merge' })
  await world.settle()
  const before = world.api.count('patch', 'sandboxwarmpools')
  await world.settle(30 * minute)
  t.equal(world.api.count('patch', 'sandboxwarmpools'), before)
})

t.test('a pool at rest writes nothing', async (t) => {
  const { world } = await aFullPool(t, aWarmPool())
  const before = world.api.calls.length
  await world.settle(30 * minute)
  t.equal(world.api.calls.length, before)
})

t.test('case 5: a sandbox claimed at the moment of a scale to 0 survives', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool())
  const [first] = world.stock()
  world.informers.sandboxes.pause()
  if (first) await world.claim(first)
  await world.scale(pool, 0)
  await world.settle()
  world.informers.sandboxes.resume()
  await world.settle()
  t.same(
    world.api.all(sandboxKind).map(({ metadata }) => metadata.uid),
    [first?.metadata.uid],
  )
})

t.test('cases 6 and 7: pools of the same name elsewhere, or on the same template, keep their own stock', async (t) => {
  const world = await aWorld(t)
  const inA = await world.createPool({ ...aSet({ replicas: 1 }), metadata: { name: 'pool', namespace: 'a' } })
  const inB = await world.createPool({ ...aSet({ replicas: 2 }), metadata: { name: 'pool', namespace: 'b' } })
  const one = await world.createPool(aWarmPool({ replicas: 1 }))
  const two = await world.createPool({ ...aWarmPool({ replicas: 2 }), metadata: { name: 'other', namespace: 'ns' } })
  await world.settle()
  const owned = (pool: Pool) =>
    world.stock().filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === pool.metadata.uid).length
  t.same([inA, inB, one, two].map(owned), [1, 2, 1, 2])
})

t.test('case 24: a forged sandbox is not counted, not deleted, and told of once', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool())
  const { metadata, spec } = world.stock()[0]!
  await world.api.create(sandboxKind, {
    kind: 'Sandbox',
    metadata: { ...metadata, name: 'forged', ownerReferences: [poolOwner(pool)] },
    spec,
  })
  await world.settle()
  await world.scale(pool, 0)
  await world.settle(20 * minute)
  t.same(
    world.stock().map((sandbox) => sandbox.metadata.name),
    ['forged'],
  )
  t.match(world.stored(pool).status, { replicas: 0 })
  const told = world.events.filter((event) => event.includes('UnprovenSandbox'))
  t.equal(told.length, 1)
  t.match(told[0], /proof of origin does not match: somebody else made it, or changed it since/)
})

t.test('an orphan gets its owner back', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool())
  const { name = '', uid } = world.stock()[0]!.metadata
  await world.api.patch(
    sandboxKind,
    { namespace: 'ns', name },
    { metadata: { ownerReferences: [] } },
    { type: 'merge' },
  )
  await world.settle()
  const adopted = world.stock().find(({ metadata }) => metadata.uid === uid)
  t.same(adopted?.metadata.ownerReferences, [poolOwner(pool)])
  t.equal(world.stock().length, 3)
})

t.test('a sandbox without an owner, as from a backup, is looked at when it comes', async (t) => {
  const { world } = await aFullPool(t, aWarmPool())
  const { metadata, spec } = world.stock()[0]!
  const marks = { [labels.warmPool]: metadata.labels?.[labels.warmPool] ?? '' }
  await world.api.create(sandboxKind, { metadata: { name: 'restored', namespace: 'ns', labels: marks }, spec })
  await world.settle(15)
  t.ok(world.events.some((event) => event.startsWith('Warning UnprovenSandbox Sandbox restored')))
})

t.test('refilling yields to claims that wait, for at most two seconds', async (t) => {
  const world = await aWorld(t)
  world.claimsWaiting = 1
  await world.createPool(aWarmPool())
  await world.settle(1_900)
  t.equal(world.stock().length, 0)
  await world.settle(200)
  t.equal(world.stock().length, 3)
})

t.test('what is missing after the wait is made in one pass, planned on what is missing then', async (t) => {
  const { world } = await aFullPool(t, aWarmPool())
  world.claimsWaiting = 1
  for (const sandbox of world.stock()) {
    await world.claim(sandbox)
    await world.settle(50)
  }
  world.claimsWaiting = 0
  const before = world.events.length
  await world.settle(100)
  t.match(world.events.slice(before), ['Normal SandboxesCreated Created 3 sandboxes.'])
})

t.test('the refill rate holds over time', async (t) => {
  const world = await aWorld(t)
  world.config = { ...world.config, pools: { ...world.config.pools, maxRefillPerSecond: 2 } }
  await world.createPool(aWarmPool({ replicas: 10 }))
  await world.settle(100)
  t.equal(world.stock().length, 2)
  await world.settle(2_000)
  t.equal(world.stock().length, 6)
})

t.test('a pool whose template is missing wakes when the template appears', async (t) => {
  const world = new PoolWorld()
  t.teardown(world.start())
  const pool = await world.createPool(aWarmPool())
  await world.settle()
  t.match(conditionOf(world.stored(pool), 'TemplateResolved'), { status: 'False', reason: 'TemplateNotFound' })
  await world.api.create(sandboxTemplateKind, aTemplate())
  await world.settle()
  t.equal(world.stock().length, 3)
})

t.test('a template that an admission rule refuses makes no sandbox', async (t) => {
  const world = new PoolWorld()
  t.teardown(world.start())
  const spec = { containers: [{ name: 'main', image: 'x', securityContext: { privileged: true } }] }
  await world.api.create(sandboxTemplateKind, aTemplate({ podTemplate: { spec } }))
  const pool = await world.createPool(aWarmPool())
  await world.settle()
  t.equal(world.stock().length, 0)
  t.match(conditionOf(world.stored(pool), 'TemplateResolved'), { reason: 'TemplateRejected', message: /privileged/ })
})

t.test('a pool of the same name, made anew, neither counts nor removes its predecessor’s stock', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool({ replicas: 1 }))
  const { name = '', namespace = '' } = pool.metadata
  await world.api.delete({ ...sandboxKind, kind: 'SandboxWarmPool', plural: 'sandboxwarmpools' }, { name, namespace })
  const [old] = world.stock()
  await world.createPool(aWarmPool({ replicas: 1 }))
  await world.settle()
  t.equal(world.stock().length, 2)
  t.ok(world.stock().some(({ metadata }) => metadata.uid === old?.metadata.uid))
  t.notOk(world.events.some((event) => event.includes('UnprovenSandbox')))
})

t.test('of two pools whose names hash alike the older has stock, and the younger once it is gone', async (t) => {
  // Found by trying some 100,000 names.
  const [plain, ofSet] = ['a312984e4', 'bd38511a0']
  t.equal(poolHash('SandboxWarmPool', plain), poolHash('SandboxSet', ofSet))
  const world = await aWorld(t)
  const older = await world.createPool({ ...aSet({ replicas: 1 }), metadata: { name: ofSet, namespace: 'ns' } })
  await world.settle(2 * second)
  const younger = await world.createPool({ ...aWarmPool({ replicas: 2 }), metadata: { name: plain, namespace: 'ns' } })
  const elsewhere = await world.createPool({ ...aWarmPool(), metadata: { name: plain, namespace: 'other' } })
  await world.settle()
  const uidOf = ({ metadata }: Pool) => metadata.uid
  const owned = (pool: Pool) =>
    world.stock().filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uidOf(pool)).length
  t.same([older, younger].map(owned), [1, 0])
  t.match(conditionOf(world.stored(older), 'Progressing'), { status: 'True' })
  const progressing = (pool: SandboxWarmPool) => {
    const stored = world.api.all(sandboxWarmPoolKind).find(({ metadata }) => metadata.uid === uidOf(pool))
    return stored && conditionOf(stored, 'Progressing')
  }
  t.match(progressing(younger), { status: 'False', reason: 'NameCollision' })
  t.match(progressing(elsewhere), { reason: 'TemplateNotFound' }, 'another namespace is another space')
  await world.api.delete(sandboxSetKind, { name: ofSet, namespace: 'ns' })
  await world.settle()
  t.equal(owned(younger), 2)
})

t.test('a name whose hash a sandbox has already is passed over', async (t) => {
  const first = await aWorld(t)
  await first.createPool(aWarmPool({ replicas: 1 }))
  await first.settle()
  const [{ metadata, spec } = { metadata: {}, spec: { podTemplate: { spec: podSpec } } }] = first.stock()
  // The same random numbers again, and the first name is taken.
  const world = await aWorld(t)
  await world.api.create(sandboxKind, { metadata: { name: metadata.name ?? '', namespace: 'ns' }, spec })
  const before = world.api.count('create', 'sandboxes')
  await world.createPool(aWarmPool({ replicas: 2 }))
  await world.settle()
  t.equal(world.stock().length, 2)
  t.equal(world.api.count('create', 'sandboxes') - before, 2)
})
