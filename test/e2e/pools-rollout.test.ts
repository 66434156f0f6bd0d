import t from 'tap'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type SandboxSetSpec,
} from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { controllerOf } from '../../src/kube/object.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { follow, imageOf, isReady, statusesOf, stockOf } from './pool-watch.ts'
import { startScene } from './scene.ts'

const namespace = 'default'

const podTemplate = (image: string, behaviour = 'run') => ({
  metadata: { annotations: { 'simulated-kubelet/behaviour': behaviour } },
  spec: { containers: [{ name: 'main', image }] },
})

t.test('pools that grow and change, seen at every write', { timeout: 120_000 }, async (t) => {
  const { client, controlPlane, product, until } = await startScene(t)
  const merge = { type: 'merge' } as const

  const createSet = (name: string, spec: SandboxSetSpec) =>
    client.create(sandboxSetKind, { metadata: { name, namespace }, spec })
  const patchSet = (name: string, spec: object) => client.patch(sandboxSetKind, { namespace, name }, { spec }, merge)
  const statusOf = async (name: string) => (await client.get(sandboxSetKind, { namespace, name })).status ?? {}
  const untilUpdated = (name: string, replicas: number, before?: string) =>
    until(`${name} to be updated`, async () => {
      const { updatedAvailableReplicas, replicas: present, updateRevision } = await statusOf(name)
      return updatedAvailableReplicas === replicas && present === replicas && updateRevision !== before
    })

  await t.test('scaled from 0 to 20 with scaleStrategy 5, never more than 5 are creating', async (t) => {
    const { metadata } = await createSet('steps', {
      replicas: 0,
      scaleStrategy: { maxUnavailable: 5 },
      template: podTemplate('box:1', 'delay=150'),
    })
    let most = 0
    const seen = await follow(t, client, sandboxKind, namespace, (store) => {
      const creating = stockOf(store.values(), metadata.uid).filter((sandbox) => !isReady(sandbox))
      most = Math.max(most, creating.length)
    })
    await patchSet('steps', { replicas: 20 })
    await untilUpdated('steps', 20)
    t.equal(most, 5)
    t.equal(stockOf(seen.store.values(), metadata.uid).length, 20)
  })

  await t.test('a rolling update of 10 with maxUnavailable 1 is never seen below 9 available', async (t) => {
    const { metadata } = await createSet('rolling', {
      replicas: 10,
      updateStrategy: { maxUnavailable: 1 },
      template: podTemplate('box:1', 'delay=50'),
    })
    await untilUpdated('rolling', 10)
    const before = (await statusOf('rolling')).updateRevision

    const sets = await follow(t, client, sandboxSetKind, namespace)
    let [fewest, most] = [Infinity, 0]
    const sandboxes = await follow(t, client, sandboxKind, namespace, (store) => {
      const stock = stockOf(store.values(), metadata.uid)
      most = Math.max(most, stock.length)
      // The list comes one by one.
      if (most === 10) fewest = Math.min(fewest, stock.filter(isReady).length)
    })
    await patchSet('rolling', { template: podTemplate('box:2', 'delay=50') })
    await untilUpdated('rolling', 10, before)
    await Promise.all([sets.stop(), sandboxes.stop()])

    const statuses = statusesOf(sets.changes, 'rolling')
    t.equal(Math.min(...statuses.map(({ availableReplicas = 0 }) => availableReplicas)), 9, 'as the status has it')
    t.equal(fewest, 9, 'as it is')
    t.equal(most, 10, 'and never more than asked for')
    t.same(new Set(stockOf(sandboxes.store.values(), metadata.uid).map(imageOf)), new Set(['box:2']))
    const { conditions, updateRevision } = await statusOf('rolling')
    t.match(findCondition(conditions, 'Progressing'), { status: 'True', reason: 'Complete' })
    t.not(updateRevision, before)
    const updated = statuses.map(({ updatedAvailableReplicas = 0 }) => updatedAvailableReplicas)
    // From the second status on: the first is that of the revision before.
    const rising = updated.slice(updated.indexOf(0))
    t.same(
      rising,
      rising.toSorted((a, b) => a - b),
      'the update only goes forward',
    )
  })

  await t.test('case 11: scaled 2 → 10 while its hash changes, updatedReplicas is right in every status', async (t) => {
    const { metadata } = await createSet('growing', { replicas: 2, template: podTemplate('box:1', 'delay=50') })
    await untilUpdated('growing', 2)
    const sets = await follow(t, client, sandboxSetKind, namespace)
    const sandboxes = await follow(t, client, sandboxKind, namespace)
    await Promise.all([
      patchSet('growing', { replicas: 10 }),
      patchSet('growing', { template: podTemplate('box:2', 'delay=50') }),
    ])
    await until('the new stock', async () => {
      const stock = stockOf(sandboxes.store.values(), metadata.uid)
      return stock.length === 10 && stock.every((sandbox) => isReady(sandbox) && imageOf(sandbox) === 'box:2')
    })
    await untilUpdated('growing', 10)
    await Promise.all([sets.stop(), sandboxes.stop()])

    const everMade = new Map<string, string>()
    for (const { object } of sandboxes.changes) {
      if (controllerOf(object)?.uid !== metadata.uid) continue
      const revision = object.metadata.labels?.[labels.setTemplateHash]
      if (revision !== undefined) everMade.set(object.metadata.name ?? '', revision)
    }
    for (const {
      replicas = 0,
      updatedReplicas = 0,
      updatedAvailableReplicas = 0,
      availableReplicas = 0,
      updateRevision,
    } of statusesOf(sets.changes, 'growing')) {
      const made = [...everMade.values()].filter((revision) => revision === updateRevision).length
      t.ok(updatedReplicas <= made, `${updatedReplicas} updated of ${made} ever made of ${updateRevision}`)
      t.ok(updatedAvailableReplicas <= Math.min(updatedReplicas, availableReplicas))
      t.ok(updatedReplicas <= replicas && replicas <= 10)
    }
    t.match(await statusOf('growing'), { updatedReplicas: 10, availableReplicas: 10 })
  })

  await t.test('case 18: a set by templateRef rolls when the template’s image changes', async (t) => {
    const template = { metadata: { name: 'shared', namespace }, spec: { podTemplate: podTemplate('box:1') } }
    await client.create(sandboxTemplateKind, template)
    const { metadata } = await createSet('referring', { replicas: 3, templateRef: { name: 'shared' } })
    await untilUpdated('referring', 3)
    const before = (await statusOf('referring')).updateRevision
    const ref = { namespace, name: 'shared' }
    await client.patch(sandboxTemplateKind, ref, { spec: { podTemplate: podTemplate('box:2') } }, merge)
    await untilUpdated('referring', 3, before)
    const stock = stockOf((await client.list(sandboxKind, { namespace })).items, metadata.uid)
    t.same(stock.map(imageOf), ['box:2', 'box:2', 'box:2'])
  })

  await t.test('Recreate hands out nothing stale when the image and the claims come together', async (t) => {
    const template = { metadata: { name: 'fast', namespace }, spec: { podTemplate: podTemplate('box:1') } }
    await client.create(sandboxTemplateKind, template)
    const { metadata } = await client.create(sandboxWarmPoolKind, {
      metadata: { name: 'fast', namespace },
      spec: { replicas: 80, sandboxTemplateRef: { name: 'fast' }, updateStrategy: { type: 'Recreate' } },
    })
    await until('the pool', async () => {
      const pool = await client.get(sandboxWarmPoolKind, { namespace, name: 'fast' })
      return pool.status?.readyReplicas === 80
    })
    const stale = new Set(
      stockOf((await client.list(sandboxKind, { namespace })).items, metadata.uid).map(
        (sandbox) => sandbox.metadata.name,
      ),
    )
    const since = Date.now()
    const claim = (name: string) =>
      client.create(sandboxClaimKind, { metadata: { name, namespace }, spec: { warmPoolRef: { name: 'fast' } } })
    const uids: (string | undefined)[] = []
    const stream = async (prefix: string) => {
      for (let i = 0; i < 12; i++) uids.push((await claim(`${prefix}-${i}`)).metadata.uid)
    }
    // Some come before the change, some with it, some after it while stale stock is still there.
    const first = await claim('quick')
    const ref = { namespace, name: 'fast' }
    const change = client.patch(sandboxTemplateKind, ref, { spec: { podTemplate: podTemplate('box:2') } }, merge)
    await Promise.all([change, ...['a', 'b', 'c', 'd'].map((letter) => stream(`quick-${letter}`))])
    const claimUids = new Set([first.metadata.uid, ...uids])
    await until('every claim', async () => {
      const { items } = await client.list(sandboxClaimKind, { namespace })
      const ours = items.filter((each) => claimUids.has(each.metadata.uid))
      return ours.every(({ status }) => findCondition(status?.conditions, 'Ready')?.status === 'True')
    })
    await until('the new stock', async () => {
      const stock = stockOf((await client.list(sandboxKind, { namespace })).items, metadata.uid)
      return stock.length === 80 && stock.every((sandbox) => isReady(sandbox) && imageOf(sandbox) === 'box:2')
    })

    // The first removal shows that the change has arrived. Whatever was adopted later must be of the new image.
    const requests = (await controlPlane.requestsOf(product.username, since)).filter(
      ({ resource, name, code }) => resource === 'sandboxes' && stale.has(name ?? '') && code === 200,
    )
    const removals = requests.filter(({ verb }) => verb === 'delete')
    const known = Math.min(...removals.map(({ receivedAt, durationMs }) => receivedAt + durationMs))
    const late = requests.filter(({ verb, receivedAt }) => verb === 'patch' && receivedAt > known)
    t.same(
      late.map(({ name }) => name),
      [],
    )
    const adopted = requests.filter(({ verb }) => verb === 'patch').length
    t.equal(removals.length, 80 - adopted)
    t.ok(removals.length > 0)
    const bound = (await client.list(sandboxKind, { namespace })).items.filter((sandbox) =>
      claimUids.has(controllerOf(sandbox)?.uid),
    )
    t.equal(bound.length, 49)
    t.equal(bound.filter((sandbox) => imageOf(sandbox) === 'box:1').length, adopted)
  })

  await t.test(
    'killed while a pool fills and started again, it never makes more than asked for',
    { timeout: 60_000 },
    async (t) => {
      const { metadata } = await createSet('interrupted', { replicas: 0, template: podTemplate('box:1') })
      let most = 0
      const begun = Promise.withResolvers<void>()
      const seen = await follow(t, client, sandboxKind, namespace, (store) => {
        most = Math.max(most, stockOf(store.values(), metadata.uid).length)
        if (most > 5) begun.resolve()
      })
      await patchSet('interrupted', { replicas: 60 })
      await begun.promise
      await product.process.stop('SIGKILL')
      t.ok(stockOf(seen.store.values(), metadata.uid).length < 60, 'in mid-fill')
      await product.start()
      await waitUntil('the rest', async () => (await statusOf('interrupted')).availableReplicas === 60, {
        withinMs: 50_000,
      })
      t.equal(most, 60)
    },
  )
})
