import t from 'tap'
import { namespaces, pods } from '../../src/api/core.ts'
import { sandboxClaimKind, sandboxKind, sandboxSetKind, sandboxTemplateKind } from '../../src/api/kinds.ts'
import { controllerOf } from '../../src/kube/object.ts'
import { poolOwner } from '../../src/planning/pools.ts'
import { aClaimWorld, ClaimWorld } from '../support/claim-world.ts'
import { aSet, aTemplate } from '../support/pool-fixtures.ts'

t.test('a warm claim costs two writes and no reads, and is Ready with the second', async (t) => {
  const { world } = await aClaimWorld(t, { members: 3 })
  t.same(await world.requests(() => world.createClaim('a')), ['patch sandboxes', 'patch sandboxclaims/status'])
  t.match(world.ready('a'), { status: 'True', reason: 'DependenciesReady', observedGeneration: 1 })
  t.same(world.claim('a')?.status?.sandbox, { name: 'pool-1', podIPs: ['10.0.0.1'] })
  t.same(world.owned('a'), ['pool-1'])
  t.same(await world.requests(() => world.advance(3_600_000)), [], 'and nothing more, ever')
})

t.test('a claim on an empty pool is started cold under its own name, with one create', async (t) => {
  const { world } = await aClaimWorld(t, { members: 0 })
  t.same(await world.requests(() => world.createClaim('a')), ['create sandboxes', 'patch sandboxclaims/status'])
  t.same(world.owned('a'), ['a'])
  t.equal(world.ready('a')?.reason, 'SandboxNotReady')
  await world.report('a', 'True', { podIPs: ['10.0.0.7'] })
  await world.settle()
  t.match(world.claim('a')?.status?.sandbox, { name: 'a', podIPs: ['10.0.0.7'] })
})

t.test('a claim waits for stock that has no address, is woken by it, and starts cold after two seconds', async (t) => {
  const { world, pool } = await aClaimWorld(t, { members: 0 })
  const member = await world.addMember(pool, { ready: false })
  t.same(await world.requests(() => world.createClaim('a')), [])
  await world.makeReady(member)
  await world.settle()
  t.equal(world.boundTo('a'), 'pool-1')

  await world.addMember(pool, { ready: false })
  await world.createClaim('b')
  await world.advance(1_999)
  t.equal(world.boundTo('b'), undefined)
  await world.advance(501)
  t.equal(world.boundTo('b'), 'b')
})

t.test('case 3: an old event of a sandbox that was adopted does not put it back on offer', async (t) => {
  const { world, process } = await aClaimWorld(t, { members: 1 })
  process.caches.sandboxes.pause()
  const [member] = world.stock()
  await world.report(member?.metadata.name ?? '', 'True', { podIPs: ['10.0.0.1'], podUID: 'pod', nodeName: 'node-2' })
  await world.createClaim('a')
  await world.settle()
  t.equal(world.boundTo('a'), 'pool-1', 'after a conflict and a live read')
  process.caches.sandboxes.deliver(1)
  await world.createClaim('b')
  await world.settle()
  t.equal(world.boundTo('b'), 'b', 'the old event offers nothing')
  process.caches.sandboxes.resume()
  await world.settle()
  t.same([world.owned('a'), world.owned('b')], [['pool-1'], ['b']])
})

t.test('case 5: a sandbox that the pool removes at the moment of a claim is not handed out', async (t) => {
  const { world, process } = await aClaimWorld(t, { members: 2 })
  process.caches.sandboxes.pause()
  await world.remove(sandboxKind, 'pool-1')
  await world.createClaim('a')
  await world.settle()
  t.equal(world.boundTo('a'), 'pool-2', 'the next candidate in the same pass')
})

t.test('case 6: stock of another namespace is never touched, though its pool has the same name', async (t) => {
  const { world } = await aClaimWorld(t, { members: 1 })
  const set = { ...aSet(), metadata: { name: 'pool', namespace: 'other' } }
  await world.put(sandboxSetKind, set)
  await world.put(sandboxClaimKind, {
    metadata: { name: 'a', namespace: 'other' },
    spec: { warmPoolRef: { kind: 'SandboxSet', name: 'pool' } },
  })
  await world.settle()
  t.equal(world.boundTo('a'), 'a')
  t.equal(world.stock().length, 1)
})

t.test('case 7: of two pools on one template only the one that is named serves the claim', async (t) => {
  const { world } = await aClaimWorld(t, { members: 0 })
  const other = await world.createPool({}, 'other')
  await world.addMember(other)
  await world.createClaim('a')
  await world.createClaim('b', { warmPoolRef: { name: 'other' } })
  await world.settle()
  t.same([world.boundTo('a'), world.boundTo('b')], ['a', 'other-1'])
})

t.test('a pool that is being deleted, or that was made anew under its name, hands nothing out', async (t) => {
  const { world, pool } = await aClaimWorld(t, { members: 1 })
  await world.remove(sandboxKind, 'pool-1')
  const { uid: _old, ...owner } = poolOwner(pool)
  const member = await world.addMember(pool)
  await world.patch(sandboxKind, member.metadata.name ?? '', {
    metadata: { ownerReferences: [{ ...owner, uid: 'uid-of-its-predecessor' }] },
  })
  await world.createClaim('a')
  await world.settle()
  t.equal(world.boundTo('a'), 'a')
})

t.test('case 19: env for a container with envFrom is refused for good, until the template changes', async (t) => {
  const containers = [{ name: 'main', image: 'python', envFrom: [{ secretRef: { name: 's' } }] }]
  const template = { podTemplate: { spec: { containers } }, envVarsInjectionPolicy: 'Allowed' as const }
  const { world } = await aClaimWorld(t, { template })
  const made = await world.requests(() => world.createClaim('a', { env: [{ name: 'A', value: '1' }] }))
  t.same(made, ['get sandboxwarmpools', 'get sandboxtemplates', 'patch sandboxclaims/status'], 'judged on live objects')
  t.match(world.ready('a'), { reason: 'EnvVarsInjectionRejected', message: /claim\/env-from/ })
  t.same(await world.requests(() => world.advance(3_600_000)), [])
  await world.patch(sandboxTemplateKind, 'python', { spec: { envVarsInjectionPolicy: 'Overrides' } })
  await world.settle()
  t.equal(world.boundTo('a'), 'a')
  t.match(world.sandboxes().at(-1)?.spec.podTemplate.spec.containers[0], { env: [{ name: 'A', value: '1' }] })
})

t.test('case 27: a claim that comes before its pool and template waits for them and is woken by each', async (t) => {
  const world = new ClaimWorld(t)
  world.start()
  await world.createClaim('a')
  await world.advance(1_000)
  t.equal(world.ready('a'), undefined, 'not a word while it is young')
  const pool = await world.createPool()
  await world.addMember(pool)
  await world.settle()
  t.equal(world.ready('a'), undefined)
  await world.put(sandboxTemplateKind, { spec: aTemplate().spec, metadata: { name: 'python', namespace: 'ns' } })
  await world.settle()
  t.equal(world.boundTo('a'), 'pool-1')
})

t.test('a pool or template that stays away is reported after five seconds, from live reads', async (t) => {
  const world = new ClaimWorld(t)
  world.start()
  await world.createClaim('a')
  t.same(await world.requests(() => world.advance(4_999)), [])
  t.same(await world.requests(() => world.advance(1)), ['get sandboxwarmpools', 'patch sandboxclaims/status'])
  t.equal(world.ready('a')?.reason, 'WarmPoolNotFound')
  await world.createPool()
  await world.settle()
  t.equal(world.ready('a')?.reason, 'TemplateNotFound')
})

t.test('a Pod that is not the sandbox’s own keeps it from being handed out, until it is gone', async (t) => {
  const { world } = await aClaimWorld(t)
  const squatter = { metadata: { name: 'pool-1', namespace: 'ns' }, spec: { containers: [] } }
  await world.put(pods, squatter)
  await world.createClaim('a')
  await world.settle()
  t.equal(world.boundTo('a'), 'a')
  await world.remove(pods, 'pool-1')
  await world.createClaim('b')
  await world.settle()
  t.equal(world.boundTo('b'), 'pool-1')
})

t.test('what a claim says of itself reaches its sandbox, and later edits of its Pod metadata do too', async (t) => {
  const { world } = await aClaimWorld(t)
  const additionalPodMetadata = { labels: { 'sandbox.users.io/team': 'x' } }
  await world.createClaim('a', { additionalPodMetadata }, { annotations: { 'sandgate.dev/requested-by': 'jane' } })
  await world.settle()
  const sandbox = () => world.sandboxes()[0]
  t.equal(sandbox()?.metadata.annotations?.['sandgate.dev/requested-by'], 'jane')
  t.equal(controllerOf(sandbox() ?? { metadata: {} })?.kind, 'SandboxClaim')
  const labelsOf = () => sandbox()?.spec.podTemplate.metadata?.labels
  t.match(labelsOf(), { 'sandbox.users.io/team': 'x' })
  await world.patch(sandboxClaimKind, 'a', {
    spec: { additionalPodMetadata: { labels: { 'sandbox.users.io/team': 'y' } } },
  })
  await world.settle()
  t.match(labelsOf(), { 'sandbox.users.io/team': 'y' })
})

t.test(
  'a label that no rule lets in does not reach the Pod of a claim that is bound; its author is told once',
  async (t) => {
    const { world } = await aClaimWorld(t)
    await world.createClaim('a')
    await world.settle()
    const edit = { spec: { additionalPodMetadata: { labels: { app: 'sandbox-router' } } } }
    t.same(await world.requests(() => world.patch(sandboxClaimKind, 'a', edit)), ['patch sandboxclaims/status'])
    t.match(world.ready('a'), { status: 'True', observedGeneration: 2 })
    await world.patch(sandboxClaimKind, 'a', { metadata: { annotations: { 'example.com/a': '1' } } })
    await world.settle()
    t.same(world.events, ['PolicyViolated a'])
  },
)

t.test('a namespace’s label lowers the rules for its claims, and wakes them', async (t) => {
  const { world } = await aClaimWorld(t, { members: 0 })
  await world.put(namespaces, { metadata: { name: 'ns' } })
  await world.createClaim('a', { env: [{ name: 'A', value: '1' }] })
  await world.settle()
  t.equal(world.ready('a')?.reason, 'EnvVarsInjectionRejected')
  await world.unseen(() =>
    world.api.patch(
      namespaces,
      { name: 'ns' },
      { metadata: { labels: { 'sandgate.dev/admission': 'warn' } } },
      { type: 'merge' },
    ),
  )
  await world.settle()
  t.equal(world.boundTo('a'), 'a')
})
