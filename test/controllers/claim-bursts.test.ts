import t from 'tap'
import { sandboxClaimKind } from '../../src/api/kinds.ts'
import { annotations } from '../../src/api/vocabulary.ts'
import { aClaimWorld } from '../support/claim-world.ts'
import { kubeError, type Call } from '../support/memory-api.ts'

const isAdoption = ({ verb, plural }: Call) => verb === 'patch' && plural === 'sandboxes'

t.test('two claims at once share no sandbox and neither starts cold, whichever answer is late', async (t) => {
  for (const late of [1, 2]) {
    const { world } = await aClaimWorld(t, { members: 2 })
    const held = Promise.withResolvers<undefined>()
    let adoptions = 0
    world.api.fault = (call) => (isAdoption(call) && ++adoptions === late ? held.promise : undefined)
    await Promise.all([world.createClaim('a'), world.createClaim('b')])
    await world.settle()
    const early = ['a', 'b'].filter((name) => world.boundTo(name) !== undefined)
    t.equal(early.length, 1, 'one does not wait for the other')
    held.resolve(undefined)
    await world.settle()
    t.same(new Set(['a', 'b'].map((name) => world.boundTo(name))), new Set(['pool-1', 'pool-2']))
    t.same(
      world.api.calls.filter(({ verb }) => verb !== 'patch'),
      [],
      'nobody met at the API server',
    )
  }
})

t.test('a claim that fails gives its candidate to the one that waits', async (t) => {
  const { world, pool } = await aClaimWorld(t, { members: 1 })
  await world.addMember(pool, { ready: false })
  const held = Promise.withResolvers<ReturnType<typeof kubeError>>()
  world.failNext(isAdoption, held.promise)
  await world.createClaim('a')
  await world.createClaim('b')
  await world.settle()
  t.same([world.boundTo('a'), world.boundTo('b')], [undefined, undefined])
  held.resolve(kubeError('Forbidden', 'not yours'))
  await world.settle()
  t.equal(world.boundTo('b'), 'pool-1')
})

t.test('300 claims on 300 sandboxes cost 600 writes, no reads, and one pass over each', async (t) => {
  const { world, pool, process } = await aClaimWorld(t, { members: 0 })
  for (let i = 0; i < 300; i++) await world.addMember(pool, { node: `node-${i % 7}` })
  let lookups = 0
  const { store } = process.caches.sandboxes
  const indexed = store.indexed.bind(store)
  store.indexed = (index, value) => {
    const found = indexed(index, value)
    lookups += 1 + found.length
    return found
  }
  const names = Array.from({ length: 300 }, (_, i) => `c-${i}`)
  const requests = await world.requests(() => Promise.all(names.map((name) => world.createClaim(name))))
  t.equal(requests.filter((request) => request === 'patch sandboxes').length, 300)
  t.equal(requests.filter((request) => request === 'patch sandboxclaims/status').length, 300)
  t.equal(requests.length, 600)
  t.equal(new Set(names.map((name) => world.boundTo(name))).size, 300)
  for (const name of names) t.equal(world.ready(name)?.status, 'True')
  t.ok(lookups < 300 * 12, `${lookups} objects looked at in the index`)
})

t.test('claims that wait for a pool to fill are woken one by one, not all by each sandbox', async (t) => {
  const { world, pool, process } = await aClaimWorld(t, { members: 0 })
  const members = []
  for (let i = 0; i < 100; i++) members.push(await world.addMember(pool, { ready: false }))
  for (let i = 0; i < 100; i++) await world.createClaim(`c-${i}`)
  await world.settle()
  let passes = 0
  const { store } = process.caches.claims
  const get = store.get.bind(store)
  store.get = (key) => {
    passes += 1
    return get(key)
  }
  for (const member of members) await world.makeReady(member)
  await world.settle()
  t.equal(world.stock().length, 0)
  t.ok(passes < 100 * 15, `${passes} looks at a claim`)
})

t.test('what each claim was given, and how fast, is counted once', async (t) => {
  const { world } = await aClaimWorld(t, { members: 1 })
  const seen = { annotations: { [annotations.clientFirstRequestedAt]: new Date(world.clock.now() - 40).toISOString() } }
  await world.createClaim('a', {}, seen)
  await world.createClaim('b')
  await world.settle()
  for (const status of ['False', 'True'] as const) {
    await world.report('pool-1', status, { podIPs: ['10.0.0.1'] })
    await world.settle()
  }
  await world.report('b', 'True', { podIPs: ['10.0.0.2'] })
  await world.settle()
  /** Counts and sums by launch type. */
  const values = async (name: string) => {
    const lines = (await world.metrics.registry.getSingleMetricAsString(name)).split('\n')
    const samples = lines.filter((line) => !line.startsWith('#') && !line.includes('_bucket'))
    return Object.fromEntries(
      samples.map((line) => {
        const [, what = '', launch, value] =
          /^\w+?(_count|_sum|_total)\{.*launch_type="(\w+)".*\} (\S+)$/.exec(line) ?? []
        return [`${launch}${what}`, Number(value)]
      }),
    )
  }
  t.same(await values('agent_sandbox_claim_creation_total'), { warm_total: 1, cold_total: 1 })
  t.match(await values('agent_sandbox_claim_controller_startup_latency_ms'), { warm_count: 1, cold_count: 1 })
  t.match(await values('agent_sandbox_client_claim_startup_latency_ms'), { warm_count: 1, warm_sum: 40 })
})

t.test('a process that takes over looks at every claim, and one that does not lead at none', async (t) => {
  const { world, process } = await aClaimWorld(t, { members: 1 })
  await process.stepDown()
  await world.createClaim('a')
  await world.settle()
  t.equal(world.boundTo('a'), undefined)
  await world.remove(sandboxClaimKind, 'a')
  t.equal(process.controller.queue.depth, 0, 'nor does it remember any')
  await world.createClaim('b')
  world.start()
  await world.settle()
  t.equal(world.boundTo('b'), 'pool-1')
})

t.test('refilling is told of claims that have not had their turn yet', async (t) => {
  const { world, process } = await aClaimWorld(t, { members: 1 })
  const held = Promise.withResolvers<undefined>()
  world.failNext(isAdoption, held.promise)
  await world.createClaim('a')
  await world.settle()
  t.equal(process.controller.waiting(), 1)
  held.resolve(undefined)
  await world.settle()
  t.equal(process.controller.waiting(), 0)
})
