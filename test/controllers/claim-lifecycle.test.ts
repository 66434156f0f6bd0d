import t from 'tap'
import { sandboxClaimKind, sandboxKind } from '../../src/api/kinds.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { aClaimWorld } from '../support/claim-world.ts'
import { noon, second } from '../support/pool-fixtures.ts'

const at = (ms: number) => new Date(noon + ms).toISOString().replace('.000Z', 'Z')

t.test('case 12: Retain lets go of an adopted sandbox and keeps the claim', async (t) => {
  const { world } = await aClaimWorld(t)
  await world.createClaim('a', { lifecycle: { shutdownTime: at(10 * second), shutdownPolicy: 'Retain' } })
  await world.settle()
  t.equal(world.boundTo('a'), 'pool-1')
  await world.advance(9_999)
  t.equal(world.ready('a')?.status, 'True')
  await world.advance(1)
  t.equal(world.ready('a')?.reason, 'ClaimExpired')
  t.same(world.sandboxes(), [])
  await world.advance(2_000)
  t.equal(world.boundTo('a'), undefined, 'the name goes with the sandbox')
  t.same(world.events, ['ClaimExpired a'])
  t.same(await world.requests(() => world.advance(3_600_000)), [])
})

t.test('an expired claim is marked before it is deleted, and lives when it is extended in between', async (t) => {
  for (const isExtended of [false, true]) {
    const { world } = await aClaimWorld(t)
    await world.createClaim('a', { lifecycle: { shutdownTime: at(10 * second), shutdownPolicy: 'Delete' } })
    await world.settle()
    world.api.fault = async (call) => {
      if (call.verb === 'delete' && isExtended) {
        await world.patch(sandboxClaimKind, 'a', { spec: { lifecycle: { shutdownTime: at(60 * second) } } })
      }
      return undefined
    }
    const done = await world.requests(() => world.advance(10_000))
    t.same(done.slice(0, 2), ['patch sandboxclaims/status', 'delete sandboxclaims'])
    t.equal(world.claim('a') !== undefined, isExtended)
    t.equal(world.ready('a')?.status, isExtended ? 'True' : undefined)
  }
})

t.test('our own writes are known before the watch shows them, however late it is', async (t) => {
  const { world, process } = await aClaimWorld(t)
  await world.createClaim('a', { lifecycle: { shutdownTime: at(10 * second), shutdownPolicy: 'Delete' } })
  process.caches.claims.pause()
  await world.settle()
  t.same(await world.requests(() => world.advance(10_000)), ['patch sandboxclaims/status', 'delete sandboxclaims'])
})

t.test('case 13: of shutdownTime and ttlSecondsAfterFinished the earlier counts, to the second', async (t) => {
  const { world } = await aClaimWorld(t)
  const lifecycle = { shutdownTime: at(100 * second), ttlSecondsAfterFinished: 20 }
  await world.createClaim('a', { lifecycle })
  await world.advance(5_000)
  const finished = {
    type: 'Finished',
    status: 'True',
    reason: 'PodSucceeded',
    message: '',
    lastTransitionTime: at(5_000),
  }
  const ready = { type: 'Ready', status: 'False', reason: 'PodSucceeded', message: '', lastTransitionTime: at(5_000) }
  await world.unseen(() =>
    world.api.patch(
      sandboxKind,
      { namespace: 'ns', name: 'pool-1' },
      { status: { conditions: [ready, finished] } },
      {
        type: 'merge',
        subresource: 'status',
      },
    ),
  )
  await world.advance(19_999)
  t.equal(world.ready('a')?.reason, 'PodSucceeded')
  await world.advance(1)
  t.equal(world.ready('a')?.reason, 'ClaimExpired')
  t.match(world.claim('a')?.status?.conditions, [{ type: 'Ready' }, finished], 'Finished survives')
})

t.test('case 14: a drained Pod shows on the claim at once, and its addresses go', async (t) => {
  const { world } = await aClaimWorld(t)
  await world.createClaim('a')
  await world.settle()
  await world.report('pool-1', 'False', { podIPs: null })
  await world.settle()
  t.equal(world.ready('a')?.status, 'False')
  t.same(world.claim('a')?.status?.sandbox, { name: 'pool-1' })
})

t.test('a sandbox that is being deleted does not pass for ready', async (t) => {
  const { world } = await aClaimWorld(t)
  await world.createClaim('a')
  await world.settle()
  await world.patch(sandboxKind, 'pool-1', { metadata: { finalizers: ['example.com/hold'] } })
  await world.remove(sandboxKind, 'pool-1')
  await world.settle()
  t.match(world.ready('a'), { status: 'False', reason: 'SandboxNotReady' })
})

t.test('a bound claim whose sandbox is gone says so and is bound again, unless it must not be', async (t) => {
  for (const rebindAfterLoss of [true, false]) {
    const { world, process } = await aClaimWorld(t, { members: 2 })
    world.config = { ...defaultConfig, claims: { ...defaultConfig.claims, rebindAfterLoss } }
    await world.createClaim('a')
    await world.settle()
    await world.remove(sandboxKind, 'pool-1')
    await world.settle()
    t.equal(world.boundTo('a'), rebindAfterLoss ? 'pool-2' : 'pool-1')
    t.equal(world.ready('a')?.reason, rebindAfterLoss ? 'DependenciesReady' : 'SandboxMissing')
    if (rebindAfterLoss) continue
    world.config = defaultConfig
    for (const listener of process.reconfigured) listener()
    await world.settle()
    t.equal(world.boundTo('a'), 'pool-2', 'the configuration wakes it')
  }
})
