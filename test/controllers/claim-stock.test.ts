import t from 'tap'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
} from '../../src/api/kinds.ts'
import type { SandboxSet } from '../../src/api/kinds.ts'
import { annotations } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { aClaimWorld, type ClaimWorld } from '../support/claim-world.ts'
import { aSet, noon } from '../support/pool-fixtures.ts'

const newImage = { spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3.13' }] } } } }

async function servedBy(world: ClaimWorld, claim: string, spec = {}, metadata = {}): Promise<string | undefined> {
  await world.createClaim(claim, spec, metadata)
  await world.settle()
  return world.boundTo(claim)
}

async function aSetWorld(t: Parameters<typeof aClaimWorld>[0], spec: Parameters<typeof aSet>[0] = {}) {
  const { world, process } = await aClaimWorld(t, { members: 0 })
  const set = await world.put<SandboxSet>(sandboxSetKind, {
    ...aSet(spec),
    metadata: { name: 'demo', namespace: 'ns' },
  })
  return { world, process, set, ref: { warmPoolRef: { kind: 'SandboxSet' as const, name: 'demo' } } }
}

t.test('a set hands out what is available, marks it as claimed, and starts cold from its own template', async (t) => {
  const { world, set, ref } = await aSetWorld(t)
  const addressed = await world.addMember(set, { ready: false })
  await world.report(addressed.metadata.name ?? '', 'False', { podIPs: ['10.0.0.1'], podUID: 'pod' })
  await world.createClaim('a', ref)
  await world.advance(2_500)
  t.equal(world.boundTo('a'), 'a', 'an address is not enough')
  await world.makeReady(addressed)
  t.equal(await servedBy(world, 'b', ref), 'demo-1')
  t.equal(world.sandboxes()[0]?.metadata.labels?.['agents.kruise.io/sandbox-claimed'], 'true')
})

t.test('case 4, 11: during a set’s rolling update fresh members go first, stale ones after them', async (t) => {
  const { world, set, ref } = await aSetWorld(t)
  await world.addMember(set, { node: 'n' })
  await world.addMember(set, { node: 'n' })
  const rolled = { spec: { template: { spec: { containers: [{ name: 'main', image: 'python:3.13' }] } } } }
  await world.addMember(await world.patch<SandboxSet>(sandboxSetKind, 'demo', rolled), { node: 'other' })
  t.equal(await servedBy(world, 'a', ref), 'demo-3', 'fresh, though its node has fewer')
  t.equal(await servedBy(world, 'b', ref), 'demo-1')
})

t.test('a set by templateRef is judged anew when that template changes', async (t) => {
  const { world, set, ref } = await aSetWorld(t, { templateRef: { name: 'python' } })
  await world.addMember(set)
  await world.patch(sandboxTemplateKind, 'python', newImage)
  await world.addMember(set)
  t.equal(await servedBy(world, 'a', ref), 'demo-1', 'both are stale')
})

t.test('from the moment a template changes, a pool that recreates hands out nothing stale', async (t) => {
  for (const [type, served] of [
    ['Recreate', 'a'],
    ['OnReplenish', 'pool-1'],
  ] as const) {
    const { world, pool } = await aClaimWorld(t, { members: 0 })
    await world.patch(sandboxWarmPoolKind, 'pool', { spec: { updateStrategy: { type } } })
    await world.addMember(pool)
    await world.patch(sandboxTemplateKind, 'python', newImage)
    t.equal(await servedBy(world, 'a'), served)
  }
})

t.test('a pool on its way out hands nothing out, and its successor of the same name only its own', async (t) => {
  const { world, pool } = await aClaimWorld(t)
  await world.patch(sandboxWarmPoolKind, 'pool', { metadata: { finalizers: ['example.com/hold'] } })
  await world.remove(sandboxWarmPoolKind, 'pool')
  t.equal(await servedBy(world, 'a'), 'a')
  await world.patch(sandboxWarmPoolKind, 'pool', { metadata: { finalizers: null } })
  await world.remove(sandboxWarmPoolKind, 'pool')
  const successor = await world.createPool()
  t.equal(await servedBy(world, 'b'), 'b')
  await world.addMember(successor)
  t.equal(await servedBy(world, 'c'), 'pool-2')
  t.not(pool.metadata.uid, successor.metadata.uid)
})

t.test('without a recorded Pod a member is handed out only where another program runs the sandboxes', async (t) => {
  const { world, pool, process } = await aClaimWorld(t, { members: 0 })
  const { metadata } = await world.addMember(pool, { ready: false })
  await world.report(metadata.name ?? '', 'True', { podIPs: ['10.0.0.1'] })
  t.equal(await servedBy(world, 'a'), 'a')
  world.config = { ...defaultConfig, sandboxes: { ...defaultConfig.sandboxes, controller: 'external' } }
  for (const listener of process.reconfigured) listener()
  t.equal(await servedBy(world, 'b'), 'pool-1')
})

t.test('a member that somebody gave a time to end is not handed out, even before that', async (t) => {
  const { world } = await aClaimWorld(t)
  await world.patch(sandboxKind, 'pool-1', { spec: { shutdownTime: new Date(noon + 3_600_000).toISOString() } })
  t.equal(await servedBy(world, 'a'), 'a')
})

t.test('a member whose Pod metadata somebody changed is not handed out', async (t) => {
  const { world } = await aClaimWorld(t)
  const metadata = { annotations: { 'io.katacontainers.config.hypervisor.kernel_params': 'debug' } }
  await world.patch(sandboxKind, 'pool-1', { spec: { podTemplate: { metadata } } })
  t.equal(await servedBy(world, 'a'), 'a')
})

t.test('a forged member is not handed out', async (t) => {
  const { world } = await aClaimWorld(t)
  await world.patch(sandboxKind, 'pool-1', { metadata: { annotations: { [annotations.origin]: 'k1.forged' } } })
  t.equal(await servedBy(world, 'a'), 'a')
})

t.test(
  'the member that an older controller assigned is finished first, however it was noted, if it can be had',
  async (t) => {
    for (const map of ['annotations', 'labels']) {
      const { world } = await aClaimWorld(t, { members: 3 })
      const mark = (name: string) => ({ [map]: { [annotations.sandboxName]: name } })
      t.equal(await servedBy(world, 'a', {}, mark('pool-3')), 'pool-3')
      t.equal(await servedBy(world, 'b', {}, mark('pool-3')), 'pool-1', 'it is another’s by now')
      t.equal(await servedBy(world, 'c', {}, mark('nowhere')), 'pool-2')
    }
  },
)

t.test('a claim on a set that is missing says so by its kind', async (t) => {
  const { world, ref } = await aSetWorld(t)
  await world.createClaim('a', { warmPoolRef: { ...ref.warmPoolRef, name: 'nowhere' } })
  await world.advance(5_000)
  t.match(world.ready('a'), { reason: 'WarmPoolNotFound', message: /^SandboxSet nowhere/ })
})

t.test('who holds a claim’s name without the cache showing it is found out by the create', async (t) => {
  const { world, process } = await aClaimWorld(t, { members: 0 })
  process.caches.sandboxes.pause()
  const stranger = { metadata: { name: 'a', namespace: 'ns' }, spec: { podTemplate: { spec: { containers: [] } } } }
  await world.put(sandboxKind, stranger)
  const made = await world.requests(() => world.createClaim('a'))
  t.same(made, ['create sandboxes', 'get sandboxes', 'patch sandboxclaims/status'])
  t.equal(world.ready('a')?.reason, 'SandboxNameTaken')
})

t.test('a status names nothing that has come to belong to somebody else', async (t) => {
  const { world } = await aClaimWorld(t, { members: 2 })
  t.equal(await servedBy(world, 'a'), 'pool-1')
  await world.patch(sandboxKind, 'pool-1', { metadata: { ownerReferences: null } })
  await world.settle()
  t.equal(world.boundTo('a'), 'pool-2')
})

t.test('a claim that is deleted while its status is being written is let go without a word', async (t) => {
  for (const isRecreated of [false, true]) {
    const { world } = await aClaimWorld(t, { members: 2 })
    world.api.fault = async ({ subresource, verb }) => {
      if (verb !== 'patch' || subresource !== 'status') return undefined
      world.api.fault = () => undefined
      await world.remove(sandboxClaimKind, 'a')
      if (isRecreated) await world.createClaim('a')
      return undefined
    }
    await world.createClaim('a')
    await world.settle()
    t.equal(world.claim('a')?.status?.sandbox?.name, isRecreated ? 'pool-2' : undefined)
    await world.collectGarbage()
    t.equal(world.sandboxes().length, 1)
  }
})
