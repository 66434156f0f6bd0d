import t from 'tap'
import { pods } from '../../src/api/core.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type SandboxClaim,
  type SandboxSet,
  type SandboxWarmPool,
} from '../../src/api/kinds.ts'
import { controllerOf } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import { isReady, stockOf } from './pool-watch.ts'
import { startScene } from './scene.ts'

const merge = { type: 'merge' } as const
const podTemplate = { spec: { containers: [{ name: 'main', image: 'box:1' }] } }

t.test('whose stock it is, and how much', { timeout: 170_000 }, async (t) => {
  const { client, controlPlane, until } = await startScene(t, { audit: false })
  const everySandbox = async () => (await client.list(sandboxKind)).items
  const stock = async ({ metadata }: SandboxSet | SandboxWarmPool) => stockOf(await everySandbox(), metadata.uid)
  const isFull = async (pool: SandboxSet | SandboxWarmPool, replicas: number) => {
    const members = await stock(pool)
    return members.length === replicas && members.every(isReady)
  }
  const claim = (namespace: string, name: string, warmPoolRef: SandboxClaim['spec']['warmPoolRef']) =>
    client.create(sandboxClaimKind, { metadata: { name, namespace }, spec: { warmPoolRef } })
  const untilBound = (claims: readonly SandboxClaim[]) =>
    until('the claims', async () => {
      const uids = new Set(claims.map(({ metadata }) => metadata.uid))
      const { items } = await client.list(sandboxClaimKind)
      const bound = items.filter(
        ({ metadata, status }) =>
          uids.has(metadata.uid) && findCondition(status?.conditions, 'Ready')?.status === 'True',
      )
      return bound.length === claims.length
    })
  const sandboxOf = async ({ metadata: { uid } }: SandboxClaim) =>
    (await everySandbox()).filter((sandbox) => controllerOf(sandbox)?.uid === uid)

  await t.test('case 6: of two sets of one name, a claim takes from that of its namespace', async (t) => {
    await Promise.all(['a', 'b'].map((name) => controlPlane.createNamespace(name)))
    const spec = { replicas: 2, template: podTemplate }
    const inA = await client.create(sandboxSetKind, { metadata: { name: 'pool', namespace: 'a' }, spec })
    const inB = await client.create(sandboxSetKind, { metadata: { name: 'pool', namespace: 'b' }, spec })
    await until('both sets', async () => (await isFull(inA, 2)) && (await isFull(inB, 2)))
    const uids = async (set: SandboxSet) => new Set((await stock(set)).map(({ metadata }) => metadata.uid))
    const [ofA, ofB] = [await uids(inA), await uids(inB)]
    const agent = await claim('b', 'agent', { kind: 'SandboxSet', name: 'pool' })
    await untilBound([agent])
    const [taken] = await sandboxOf(agent)
    t.ok(ofB.has(taken?.metadata.uid))
    t.equal(taken?.metadata.namespace, 'b')
    await until('the set of b', () => isFull(inB, 2))
    t.same(await uids(inA), ofA)
  })

  const template = { metadata: { name: 'python', namespace: 'default' }, spec: { podTemplate } }
  await client.create(sandboxTemplateKind, template)
  const createPool = (name: string, replicas: number) =>
    client.create(sandboxWarmPoolKind, {
      metadata: { name, namespace: 'default' },
      spec: { replicas, sandboxTemplateRef: { name: 'python' } },
    })
  const scale = (name: string, replicas: number) =>
    client.patch(sandboxWarmPoolKind, { namespace: 'default', name }, { spec: { replicas } }, merge)

  await t.test('case 7: of two pools on one template, only the one that a claim names is taken from', async (t) => {
    const [named, other] = [await createPool('named', 2), await createPool('other', 2)]
    await until('both pools', async () => (await isFull(named, 2)) && (await isFull(other, 2)))
    const before = await stock(other)
    const claims = await Promise.all(['one', 'two', 'three'].map((name) => claim('default', name, { name: 'named' })))
    await untilBound(claims)
    const after = await stock(other)
    t.same(new Set(after.map(({ metadata }) => metadata.uid)), new Set(before.map(({ metadata }) => metadata.uid)))
  })

  await t.test('case 5: what is claimed at the moment of a scale to 0 survives', async (t) => {
    const pool = await createPool('racing', 12)
    for (let round = 0; round < 3; round++) {
      await scale('racing', 12)
      await until('the pool', () => isFull(pool, 12))
      const names = Array.from({ length: 8 }, (_, i) => `racing-${round}-${i}`)
      const creating = names.map((name) => claim('default', name, { name: 'racing' }))
      await Promise.race(creating)
      await scale('racing', 0)
      const claims = await Promise.all(creating)
      await untilBound(claims)
      await until('the end of the stock', () => isFull(pool, 0))
      for (const each of claims) {
        const { status } = await client.get(sandboxClaimKind, {
          namespace: 'default',
          name: each.metadata.name ?? '',
        })
        const own = await sandboxOf(each)
        t.same(
          own.map((sandbox) => sandbox.metadata.name),
          [status?.sandbox?.name],
        )
        t.ok(own.every(isReady))
      }
    }
  })

  await t.test('a pool of 300 fills, and leaves nothing behind when it is deleted', { timeout: 90_000 }, async (t) => {
    const pool = await createPool('big', 300)
    const patience = { withinMs: 60_000, everyMs: 250 }
    const status = async () => (await client.get(sandboxWarmPoolKind, { namespace: 'default', name: 'big' })).status
    await waitUntil('the pool', async () => (await status())?.readyReplicas === 300, patience)
    t.equal((await stock(pool)).length, 300)
    const names = new Set((await stock(pool)).map(({ metadata }) => metadata.name))
    t.match(findCondition((await status())?.conditions, 'Progressing'), { status: 'True', reason: 'Complete' })

    await client.delete(sandboxWarmPoolKind, { namespace: 'default', name: 'big' })
    const left = async () => {
      const objects = [...(await everySandbox()), ...(await client.list(pods)).items]
      return objects.filter(({ metadata }) => names.has(metadata.name))
    }
    await waitUntil('the end of it all', async () => (await left()).length === 0, patience)
    t.equal((await stock(pool)).length, 0, 'and nothing comes after it')
  })
})
