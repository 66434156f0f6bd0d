import t from 'tap'
import type { Sandbox } from '../../src/api/kinds.ts'
import { verifyOrigin } from '../../src/planning/origin.ts'
import { kubeError } from '../support/memory-api.ts'
import { aSet, aWarmPool, minute, second } from '../support/pool-fixtures.ts'
import { aWorld, aFullPool, conditionOf } from '../support/pool-world.ts'

t.test('with a watch that shows nothing there are never more than replicas sandboxes', async (t) => {
  const world = await aWorld(t)
  world.informers.sandboxes.pause()
  const pool = await world.createPool(aWarmPool({ replicas: 40 }))
  await world.settle()
  await world.scale(pool, 39)
  await world.settle()
  await world.scale(pool, 40)
  await world.settle(4 * minute)
  t.equal(world.stock().length, 40)
  world.informers.sandboxes.resume()
  await world.settle()
  t.equal(world.stock().length, 40)
})

t.test('case 8: a delete that fails is repeated, and its sandbox is not counted as available meanwhile', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool())
  let failures = 0
  const available: (number | undefined)[] = []
  world.informers.warmPools.onChange(
    ({ kind, object }) => kind === 'updated' && available.push(object.status?.readyReplicas),
  )
  world.api.fault = ({ verb }) => (verb === 'delete' && failures++ < 1 ? kubeError('ServerError') : undefined)
  await world.scale(pool, 2)
  await world.settle()
  t.equal(failures, 2)
  t.equal(world.stock().length, 2)
  t.same(new Set(available.slice(1)), new Set([2]))
})

t.test('a removal that fails makes room for nothing', async (t) => {
  const { world, pool } = await aFullPool(t, aSet({ replicas: 3, updateStrategy: { maxUnavailable: 3 } }))
  world.api.fault = ({ verb }) => (verb === 'delete' ? kubeError('ServerError') : undefined)
  await world.patchPool(pool, { spec: { template: { spec: { containers: [{ name: 'main', image: 'python:4' }] } } } })
  await world.settle(minute)
  t.equal(world.stock().length, 3)
  world.api.fault = () => undefined
  await world.settle(2 * minute)
  t.equal(world.stock().length, 3)
  await world.makeAllReady()
  t.match(world.stored(pool).status, { updatedAvailableReplicas: 3 })
})

t.test('case 9: a watch that is faster than the reply neither stalls the pool nor makes one too many', async (t) => {
  const world = await aWorld(t)
  // The store is told before the reply is given: that is how this API in memory always answers. Here the reply is late, too.
  world.api.fault = async ({ verb }) => {
    if (verb === 'create') await Promise.resolve()
    return undefined
  }
  await world.createPool(aWarmPool({ replicas: 5 }))
  await world.settle()
  t.equal(world.api.count('create', 'sandboxes'), 5)
})

t.test('a create whose reply is lost is repeated under its name and never makes a second one', async (t) => {
  const world = await aWorld(t)
  let isLost = true
  world.api.fault = ({ verb, plural }) => {
    if (verb !== 'create' || plural !== 'sandboxes' || !isLost) return undefined
    isLost = false
    return 'lost'
  }
  world.informers.sandboxes.pause()
  await world.createPool(aWarmPool({ replicas: 2 }))
  await world.settle()
  t.equal(world.stock().length, 2)
  const names = world.api.calls
    .filter(({ verb, plural }) => verb === 'create' && plural === 'sandboxes')
    .map(({ name }) => name)
  t.equal(names.length, 3)
  t.equal(names[0], names[1])
})

t.test('a repeated create is done although a claim has the sandbox already', async (t) => {
  const world = await aWorld(t)
  let isLost = true
  world.api.fault = ({ verb, plural }) => {
    if (verb !== 'create' || plural !== 'sandboxes' || !isLost) return undefined
    isLost = false
    // The claim controller's cache is ahead of ours.
    queueMicrotask(() => queueMicrotask(() => void world.claim(world.stock()[0]!)))
    return 'lost'
  }
  world.informers.sandboxes.pause()
  const pool = await world.createPool(aWarmPool({ replicas: 1 }))
  await world.settle()
  world.informers.sandboxes.resume()
  await world.settle()
  t.equal(world.stock().length, 1)
  t.match(world.stored(pool).status, { replicas: 1 })
})

t.test('an expectation that does not come true is resolved by a live list after five minutes', async (t) => {
  const world = await aWorld(t)
  let isFirst = true
  world.api.fault = ({ verb, plural }) => {
    if (verb !== 'create' || plural !== 'sandboxes' || !isFirst) return undefined
    isFirst = false
    return kubeError('OutcomeUnknown')
  }
  const pool = await world.createPool(aWarmPool({ replicas: 1 }))
  await world.settle(1)
  await world.scale(pool, 0)
  await world.settle(4 * minute)
  t.equal(world.stock().length, 0, 'not repeated when it is no longer wanted')
  await world.settle(16 * minute)
  t.equal(world.api.count('list', 'sandboxes'), 1)
  await world.settle(40 * minute)
  t.equal(world.api.count('list', 'sandboxes'), 1, 'once and for all')
  await world.scale(pool, 2)
  await world.settle()
  t.equal(world.stock().length, 2)
})

t.test("what another webhook made of the Pod's metadata is signed as well", async (t) => {
  const world = await aWorld(t)
  world.api.mutate = (object) => {
    if (object.kind !== 'Sandbox') return object
    const { podTemplate, ...spec } = object.spec as Sandbox['spec']
    const metadata = { ...podTemplate.metadata, labels: { ...podTemplate.metadata?.labels, team: 'red' } }
    return { ...object, spec: { ...spec, podTemplate: { ...podTemplate, metadata } } }
  }
  const pool = await world.createPool(aWarmPool({ replicas: 2 }))
  await world.settle()
  t.equal(world.stock().length, 2)
  t.ok(world.stock().every((sandbox) => verifyOrigin(world.keys, sandbox, pool.metadata.uid ?? '') === 'valid'))
})

t.test('what another webhook made of the blueprint is signed by one patch, and counts', async (t) => {
  const world = await aWorld(t)
  world.api.mutate = (object) =>
    object.kind === 'Sandbox' ? { ...object, spec: { ...(object.spec as object), service: true } } : object
  const pool = await world.createPool(aWarmPool({ replicas: 2 }))
  world.informers.sandboxes.pause()
  let fails = 1
  world.api.fault = ({ verb, plural }) =>
    verb === 'patch' && plural === 'sandboxes' && fails-- > 0 ? kubeError('ServerError') : undefined
  await world.settle(20)
  world.informers.sandboxes.deliver(1)
  await world.settle()
  world.informers.sandboxes.resume()
  await world.settle()
  t.equal(world.stock().length, 2)
  t.ok(world.stock().every((sandbox) => verifyOrigin(world.keys, sandbox, pool.metadata.uid ?? '') === 'valid'))
  t.notOk(world.events.some((event) => event.includes('UnprovenSandbox')))
  await world.makeAllReady()
  t.match(world.stored(pool).status, { readyReplicas: 2 })
})

t.test('a refused create is told of in the condition, waits, and is tried again', async (t) => {
  const world = await aWorld(t)
  world.api.fault = ({ verb, plural }) =>
    verb === 'create' && plural === 'sandboxes'
      ? kubeError('Forbidden', 'sandboxes is forbidden: exceeded quota: small')
      : undefined
  const pool = await world.createPool(aWarmPool())
  await world.settle()
  t.match(conditionOf(world.stored(pool), 'Progressing'), {
    status: 'False',
    reason: 'QuotaExceeded',
    message: /small/,
  })
  const attempts = world.api.count('create', 'sandboxes')
  t.equal(attempts, 1)
  world.api.fault = () => undefined
  await world.settle(2 * second)
  t.equal(world.stock().length, 3)
  t.match(conditionOf(world.stored(pool), 'Progressing'), { status: 'True' })
  t.ok(world.events.some((event) => event.startsWith('Normal PoolProgressing')))
})

t.test('a pass that fails half-way still publishes what it saw', async (t) => {
  const { world, pool } = await aFullPool(t, aWarmPool())
  world.api.fault = ({ verb, plural }) =>
    verb === 'create' && plural === 'sandboxes' ? kubeError('ServerError') : undefined
  await world.claim(world.stock()[0]!)
  await world.settle(100)
  t.match(world.stored(pool).status, { replicas: 2 })
})

t.test('a namespace that is being deleted ends the pass silently', async (t) => {
  const world = await aWorld(t)
  world.api.fault = ({ verb, plural }) =>
    verb === 'create' && plural === 'sandboxes' ? kubeError('Forbidden', 'ending', 'NamespaceTerminating') : undefined
  const pool = await world.createPool(aWarmPool())
  await world.settle(10 * minute)
  t.equal(world.api.count('create', 'sandboxes'), 1)
  t.equal(world.stored(pool).status, undefined)
  t.same(world.events, [])
})
