import t from 'tap'
import { namespaces } from '../../src/api/core.ts'
import { sandboxKind, sandboxTemplateKind, sandboxWarmPoolKind } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { poolOwner } from '../../src/planning/pools.ts'
import { kubeError } from '../support/memory-api.ts'
import { aSet, aWarmPool, minute, second } from '../support/pool-fixtures.ts'
import { aFullPool, aWorld, conditionOf, PoolWorld } from '../support/pool-world.ts'

const ref = { namespace: 'ns', name: 'pool' }
const withImage = (image: string) => ({ podTemplate: { spec: { containers: [{ name: 'main', image }] } } })

t.test('a pool’s spec is never written, only its status', async (t) => {
  const { world, pool } = await aFullPool(t, aSet())
  await world.claim(world.stock()[0]!)
  await world.scale(pool, 1)
  await world.settle()
  const writes = world.api.calls.filter(({ verb, plural }) => plural === 'sandboxsets' && verb !== 'create')
  const scaling = writes.filter(({ subresource }) => subresource === '')
  t.same(
    scaling.map(({ body }) => body),
    [{ spec: { replicas: 1 } }],
    'the test’s own',
  )
  t.ok(writes.length > scaling.length)
  t.ok(writes.every(({ verb }) => verb === 'patch'))
})

t.test(
  'creates go out in batches of 1, 2, 4 …, and the first one with a failure is the last of the pass',
  async (t) => {
    const world = await aWorld(t)
    let creates = 0
    world.api.fault = ({ verb, plural }) => {
      if (verb !== 'create' || plural !== 'sandboxes') return undefined
      creates += 1
      return creates === 3 ? kubeError('ServerError') : undefined
    }
    const pool = await world.createPool(aWarmPool({ replicas: 30 }))
    await world.settle(0)
    t.equal(creates, 3)
    t.match(world.stored(pool).status, { replicas: 0 }, 'a pass that fails is published, too')
    await world.settle(2 * second)
    t.equal(world.stock().length, 30)
  },
)

t.test('removals are told of by one event with their reasons and numbers', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool({ replicas: 5 }))
  const [first, next] = world.stock()
  for (const sandbox of [first!, next!]) await world.patchStatus(sandbox, { phase: 'Failed' })
  await world.scale(pool, 2)
  await world.settle()
  t.ok(world.events.includes('Normal SandboxesRemoved Removed 3 sandboxes: 2 dead, 1 surplus.'))
})

t.test('a pool that is being deleted leaves its stock to the garbage collector', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool())
  await world.patchPool(pool, { metadata: { finalizers: ['foregroundDeletion'] } })
  await world.api.delete(sandboxWarmPoolKind, ref)
  const before = world.api.calls.length
  await world.api.delete(sandboxKind, { namespace: 'ns', name: world.stock()[0]!.metadata.name! })
  await world.settle(20 * minute)
  t.equal(world.stock().length, 2)
  t.equal(world.api.calls.length, before + 1, 'the test’s own')
})

t.test('so does one whose namespace is', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool())
  await world.api.create(namespaces, { metadata: { name: 'ns', finalizers: ['kubernetes'] } })
  await world.api.delete(namespaces, { name: 'ns' })
  await world.scale(pool, 9)
  await world.settle(20 * minute)
  t.equal(world.stock().length, 3)
})

t.test('stock whose key is lost is replaced a fifth at a time, and not counted as available', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool({ replicas: 10 }))
  const before = new Set(world.stock().map(({ metadata }) => metadata.uid))
  world.keys = { current: { id: 'k9', secret: Buffer.alloc(32, 9) } }
  // Something has to happen for the pool to be looked at.
  await world.patchPool(pool, { spec: { replicas: 11 } })
  await world.settle()
  t.match(world.stored(pool).status, { replicas: 11, readyReplicas: 0 })
  const old = () => world.stock().filter(({ metadata }) => before.has(metadata.uid)).length
  t.equal(old(), 8, 'of eleven three may be missing, and one is')
  await world.makeAllReady()
  for (let round = 0; round < 12; round++) await world.makeAllReady()
  t.equal(old(), 0)
  t.match(world.stored(pool).status, { replicas: 11, readyReplicas: 11 })
  t.notOk(
    world.events.some((event) => event.includes('UnprovenSandbox')),
    'lost is not forged',
  )
})

t.test('a forgery is counted in a metric, once', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool())
  const counted: object[] = []
  world.deps.metrics.unprovenSandboxes.inc = (of) => void counted.push(of)
  const { metadata, spec } = world.stock()[0]!
  const marks = { [labels.warmPool]: metadata.labels?.[labels.warmPool] ?? '' }
  const forged = { name: 'forged', namespace: 'ns', labels: marks, ownerReferences: [poolOwner(pool)] }
  await world.api.create(sandboxKind, { metadata: forged, spec })
  await world.settle(20 * minute)
  t.same(counted, [{ namespace: 'ns', pool: 'pool' }])
})

t.test(
  'a change of the template wakes every pool that refers to it: Recreate makes anew, OnReplenish keeps',
  async (t) => {
    const { world, pool: kept } = await aFullPool(t, aWarmPool({ replicas: 2 }))
    const recreated = await world.createPool({
      ...aWarmPool({ replicas: 2, updateStrategy: { type: 'Recreate' } }),
      metadata: { name: 'anew', namespace: 'ns' },
    })
    await world.settle()
    await world.makeAllReady()
    await world.api.patch(
      sandboxTemplateKind,
      { namespace: 'ns', name: 'python' },
      { spec: withImage('box:2') },
      { type: 'merge' },
    )
    await world.settle()
    const imagesOf = ({ metadata: { uid } }: typeof kept) =>
      world
        .stock()
        .filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid)
        .map((sandbox) => (sandbox.spec.podTemplate.spec as { containers: { image: string }[] }).containers[0]?.image)
    t.same(imagesOf(kept), ['python:3.12', 'python:3.12'])
    t.same(imagesOf(recreated), ['box:2', 'box:2'])
  },
)

t.test(
  'one that waits for a place is held, told of once, and looked at again each minute without a write',
  async (t) => {
    const world = new PoolWorld()
    t.teardown(world.start())
    await world.api.create(sandboxTemplateKind, {
      metadata: { name: 'python', namespace: 'ns' },
      spec: withImage('box:1'),
    })
    const pool = await world.createPool(aWarmPool({ replicas: 40 }))
    await world.settle()
    const condition = {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message: '0/3 nodes are available.',
      lastTransitionTime: '2026-01-01T12:00:00Z',
    }
    for (const sandbox of world.stock()) await world.patchStatus(sandbox, { conditions: [condition] })
    await world.settle(20 * minute)
    const names = new Set(world.stock().map(({ metadata }) => metadata.name))
    t.equal(names.size, 40)
    t.equal(world.api.count('delete', 'sandboxes'), 0)
    t.match(conditionOf(world.stored(pool), 'Progressing'), { status: 'False', reason: 'Unschedulable' })
    t.equal(world.events.filter((event) => event.startsWith('Warning PoolNotProgressing')).length, 1)
    const before = world.api.calls.length
    await world.settle(20 * minute)
    t.equal(world.api.calls.length, before)
  },
)
