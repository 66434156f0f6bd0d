import t from 'tap'
import { sandboxKind, sandboxTemplateKind } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { aSet, minute, waitingPod } from '../support/pool-fixtures.ts'
import { aWorld, aFullPool, conditionOf } from '../support/pool-world.ts'

const withImage = (image: string) => ({ template: { spec: { containers: [{ name: 'main', image }] } } })

t.test('case 4: a stale sandbox that a claim adopts while it is about to be removed survives', async (t) => {
  const { world, pool } = await aFullPool(t, aSet({ replicas: 2, updateStrategy: { maxUnavailable: 2 } }))
  const [first] = world.stock()
  world.informers.sandboxes.pause()
  if (first) await world.claim(first)
  await world.patchPool(pool, { spec: withImage('python:4') })
  await world.settle()
  t.ok(world.api.all(sandboxKind).some(({ metadata }) => metadata.uid === first?.metadata.uid))
  world.informers.sandboxes.resume()
  await world.settle()
  await world.makeAllReady()
  t.match(world.stored(pool).status, { replicas: 2, updatedAvailableReplicas: 2 })
})

t.test(
  'case 10: a template that never becomes Ready leaves one creating sandbox, a named reason, and no churn',
  async (t) => {
    const world = await aWorld(t)
    const set = await world.createPool(
      aSet({ replicas: 5, scaleStrategy: { maxUnavailable: 1 }, ...withImage('nope:0') }),
    )
    await world.settle()
    await world.createPod(world.stock()[0]!, waitingPod('ErrImagePull'))
    await world.settle()
    t.match(conditionOf(world.stored(set), 'Progressing'), { status: 'False', reason: 'ImagePullBackOff' })
    await world.settle(60 * minute)
    t.equal(world.stock().length, 1)
    t.ok(world.api.count('create', 'sandboxes') <= 13, 'one in five minutes')
    t.ok(world.events.some((event) => event.startsWith('Warning PoolNotProgressing ImagePullBackOff')))
  },
)

t.test(
  'cases 11 and 18: a set rolls when the template it refers to changes, and counts the updated right',
  async (t) => {
    const world = await aWorld(t)
    const set = await world.createPool(
      aSet({ replicas: 2, templateRef: { name: 'python' }, updateStrategy: { maxUnavailable: 1 } }),
    )
    await world.settle()
    await world.makeAllReady()
    const before = world.stored(set).status?.updateRevision
    await world.api.patch(
      sandboxTemplateKind,
      { namespace: 'ns', name: 'python' },
      {
        spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'python:4' }] } } },
        metadata: { generation: 2 },
      },
      { type: 'merge' },
    )
    await world.scale(set, 3)
    for (let round = 0; round < 5; round++) {
      await world.settle()
      const { updatedReplicas = 0, updateRevision } = world.stored(set).status ?? {}
      const updated = world
        .stock()
        .filter(({ metadata }) => metadata.labels?.[labels.setTemplateHash] === updateRevision)
      t.equal(updatedReplicas, updated.length)
      await world.makeAllReady()
    }
    t.match(world.stored(set).status, { updatedAvailableReplicas: 3, replicas: 3 })
    t.not(world.stored(set).status?.updateRevision, before)
    t.ok(world.events.some((event) => event.startsWith(`Normal RollingUpdate Rolling update from revision ${before}`)))
  },
)

t.test('during a rolling update with maxUnavailable 1, availableReplicas is never seen below 9 of 10', async (t) => {
  const { world, pool } = await aFullPool(t, aSet({ replicas: 10, updateStrategy: { maxUnavailable: 1 } }))
  let lowest = 10
  world.informers.sets.onChange(({ object }) => (lowest = Math.min(lowest, object.status?.availableReplicas ?? 10)))
  await world.patchPool(pool, { spec: withImage('python:4') })
  for (let round = 0; round < 12; round++) {
    await world.settle()
    await world.makeAllReady()
  }
  t.equal(lowest, 9)
  t.match(world.stored(pool).status, { updatedAvailableReplicas: 10 })
})
