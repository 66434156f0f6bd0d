import t from 'tap'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxSet,
  type SandboxSetSpec,
  type SandboxWarmPool,
} from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { controllerOf, type KubeObject, type Resource } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { nameOf } from '../../src/planning/sandbox-identity.ts'
import { poolOwner } from '../../src/planning/pools.ts'
import { configurationFile } from './configuration-file.ts'
import { follow, isReady, stockOf } from './pool-watch.ts'
import { whileUnregistered } from './registration.ts'
import { startScene } from './scene.ts'

const namespace = 'default'
const merge = { type: 'merge' } as const

type Event = KubeObject & { reason: string; message: string; count?: number; involvedObject: { name: string } }
const eventKind: Resource<Event> = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true }

const podTemplate = (image: string, behaviour = 'run', podSpec: object = {}) => ({
  metadata: { annotations: { 'simulated-kubelet/behaviour': behaviour } },
  spec: { containers: [{ name: 'main', image }], ...podSpec },
})

t.test('pools in trouble', { timeout: 170_000 }, async (t) => {
  const configuration = await configurationFile(t.testdir())
  const scene = await startScene(t, { flags: [`--config=${configuration.path}`], audit: false })
  const { client, product, kubectlRefused, until } = scene
  await configuration.use(product, { pools: { readinessGraceSeconds: 2, maxReplicas: 40 } })

  const createSet = (name: string, spec: SandboxSetSpec) =>
    client.create(sandboxSetKind, { metadata: { name, namespace }, spec })
  const setOf = (name: string) => client.get(sandboxSetKind, { namespace, name })
  const stock = async ({ metadata }: SandboxSet | SandboxWarmPool) =>
    stockOf((await client.list(sandboxKind, { namespace })).items, metadata.uid)
  const untilFull = (pool: SandboxSet | SandboxWarmPool, replicas: number) =>
    until(`${pool.metadata.name} to be full`, async () => {
      const members = await stock(pool)
      return members.length === replicas && members.every(isReady)
    })
  const eventsOf = async (name: string, reason: string) =>
    (await client.list(eventKind, { namespace })).items.filter(
      (event) => event.involvedObject.name === name && event.reason === reason,
    )
  const uidsOf = (sandboxes: readonly Sandbox[]) => new Set(sandboxes.map(({ metadata }) => metadata.uid))
  const progressing = (pool: SandboxSet) => findCondition(pool.status?.conditions, 'Progressing')

  await t.test(
    'a stuck sandbox is replaced, 40 that have no place stay as they are',
    { timeout: 60_000 },
    async (t) => {
      const placeless = await createSet('placeless', {
        replicas: 40,
        template: podTemplate('box:1', 'run', { nodeSelector: { nowhere: 'true' } }),
      })
      await until('the condition', async () => progressing(await setOf('placeless'))?.reason === 'Unschedulable')
      await until('all of them', async () => (await setOf('placeless')).status?.replicas === 40)
      const before = uidsOf(await stock(placeless))
      t.equal(before.size, 40)

      // Made after them: when it is replaced, their grace is over too.
      const stuck = await createSet('stuck', { replicas: 1, template: podTemplate('box:1', 'not-ready') })
      await until('the stuck one', async () => (await stock(stuck)).length === 1)
      const [first] = [...uidsOf(await stock(stuck))]
      await until('its successor', async () => {
        const members = uidsOf(await stock(stuck))
        return members.size === 1 && !members.has(first)
      })
      t.same(uidsOf(await stock(placeless)), before)
      t.match(progressing(await setOf('placeless')), { status: 'False', message: /0\/2 nodes are available/ })
      const events = await eventsOf('placeless', 'PoolNotProgressing')
      t.match(events, [{ message: /Unschedulable/ }])
      t.equal(events[0]?.count ?? 1, 1)

      await client.patch(sandboxSetKind, { namespace, name: 'stuck' }, { spec: { replicas: 0 } }, merge)
      await client.patch(sandboxSetKind, { namespace, name: 'placeless' }, { spec: { replicas: 0 } }, merge)
      await untilFull(placeless, 0)
      t.match(await client.list(sandboxKind, { namespace }), { items: [] })
    },
  )

  await t.test('case 10: image nope:0 leaves one creating sandbox, a named reason, and recovers', async (t) => {
    let [most, made] = [0, 0]
    await follow(t, client, sandboxKind, namespace, (store, { kind }) => {
      const creating = [...store.values()].filter((sandbox) => !isReady(sandbox))
      most = Math.max(most, creating.length)
      if (kind === 'added') made += 1
    })
    const set = await createSet('nope', {
      replicas: 5,
      scaleStrategy: { maxUnavailable: 1 },
      template: podTemplate('nope:0', 'image-pull-error'),
    })
    await until('the second attempt', async () => made === 2)
    await until('the condition', async () => progressing(await setOf('nope'))?.status === 'False')
    t.match(progressing(await setOf('nope')), { reason: 'ImagePullBackOff', message: /nope:0/ })
    t.equal(made, 2)
    await client.patch(sandboxSetKind, { namespace, name: 'nope' }, { spec: { template: podTemplate('box:1') } }, merge)
    await untilFull(set, 5)
    t.equal(most, 1)
    await until('the condition', async () => progressing(await setOf('nope'))?.reason === 'Complete')
    await client.delete(sandboxSetKind, { namespace, name: 'nope' })
    await untilFull(set, 0)
  })

  await client.create(sandboxTemplateKind, {
    metadata: { name: 'python', namespace },
    spec: { podTemplate: podTemplate('box:1') },
  })
  const guarded = await client.create(sandboxWarmPoolKind, {
    metadata: { name: 'guarded', namespace },
    spec: { replicas: 2, sandboxTemplateRef: { name: 'python' } },
  })

  const scaleGuarded = (replicas: number) =>
    client.patch(sandboxWarmPoolKind, { namespace, name: 'guarded' }, { spec: { replicas } }, merge)

  await t.test(
    'case 24: forged with the webhook off, a sandbox is not counted, adopted, deleted or handed out',
    async (t) => {
      await untilFull(guarded, 2)
      const [genuine] = await stock(guarded)
      const forged = (name: string, owner: object): Sandbox => ({
        metadata: {
          name,
          namespace,
          labels: genuine?.metadata.labels,
          annotations: genuine?.metadata.annotations,
          ...owner,
        } as Sandbox['metadata'],
        spec: genuine?.spec ?? { podTemplate: { spec: { containers: [] } } },
      })
      await whileUnregistered(client, async () => {
        await client.create(sandboxKind, forged('forged-member', { ownerReferences: [poolOwner(guarded)] }))
        await client.create(sandboxKind, forged('forged-orphan', {}))
      })
      const forgeries = new Set(['forged-member', 'forged-orphan'])
      const all = async () => (await client.list(sandboxKind, { namespace })).items
      await until('the forgeries to be Ready', async () =>
        (await all()).filter((each) => forgeries.has(each.metadata.name ?? '')).every(isReady),
      )
      await until('the events', async () => (await eventsOf('guarded', 'UnprovenSandbox')).length === 2)

      const names = Array.from({ length: 6 }, (_, i) => `careful-${i}`)
      const spec = { warmPoolRef: { name: 'guarded' } }
      const claims = await Promise.all(
        names.map((name) => client.create(sandboxClaimKind, { metadata: { name, namespace }, spec })),
      )
      await until('every claim', async () => {
        const { items } = await client.list(sandboxClaimKind, { namespace })
        return items.every(({ status }) => findCondition(status?.conditions, 'Ready')?.status === 'True')
      })
      const uids = new Set(claims.map(({ metadata }) => metadata.uid))
      const bound = (await all()).filter((each) => uids.has(controllerOf(each)?.uid))
      t.equal(bound.length, 6)
      t.notOk(bound.some(({ metadata }) => forgeries.has(metadata.name ?? '')))
      t.equal((await client.get(sandboxKind, { namespace, name: 'forged-orphan' })).metadata.ownerReferences, undefined)

      await until('the stock', async () => {
        const { status } = await client.get(sandboxWarmPoolKind, { namespace, name: 'guarded' })
        return status?.replicas === 2 && status.readyReplicas === 2
      })
      await scaleGuarded(0)
      // Judged by the objects: the status may still speak of the moment when claims had taken all.
      const left = async () =>
        (await all())
          .filter((each) => each.metadata.labels?.[labels.warmPool] !== undefined)
          .map(nameOf)
          .toSorted()
      await until('the end of the stock', async () => (await left()).every((name) => forgeries.has(name)))
      t.same(await left(), [...forgeries].toSorted())
      for (const name of forgeries) await client.delete(sandboxKind, { namespace, name })
    },
  )

  await t.test('an orphan with a valid proof gets its owner back, one that was changed does not', async (t) => {
    await scaleGuarded(2)
    await untilFull(guarded, 2)
    const [honest, changed] = (await stock(guarded)).map(({ metadata }) => metadata.name ?? '')
    const containers = [{ name: 'main', image: 'evil:1' }]
    const orphaned = { metadata: { ownerReferences: null } }
    await whileUnregistered(client, async () => {
      await client.patch(sandboxKind, { namespace, name: honest ?? '' }, orphaned, merge)
      const patch = { ...orphaned, spec: { podTemplate: { spec: { containers } } } }
      await client.patch(sandboxKind, { namespace, name: changed ?? '' }, patch, merge)
    })
    await untilFull(guarded, 2)
    const names = new Set((await stock(guarded)).map(({ metadata }) => metadata.name))
    t.ok(names.has(honest))
    t.notOk(names.has(changed))
    t.equal((await client.get(sandboxKind, { namespace, name: changed ?? '' })).metadata.ownerReferences, undefined)
  })

  const refused = (object: object) => kubectlRefused(['create', '-f', '-'], JSON.stringify(object))
  const aSet = (name: string, spec: object) => ({
    apiVersion: 'agents.kruise.io/v1alpha1',
    kind: 'SandboxSet',
    metadata: { name, namespace },
    spec,
  })
  const template = podTemplate('box:1')

  await t.test('bad input is refused with what is wrong', async (t) => {
    t.match(await refused(aSet('a', { replicas: -1, template })), /spec\.replicas/)
    t.match(await refused(aSet('a', { replicas: 10_000_000_000, template })), /spec\.replicas/)
    t.match(await refused(aSet('a', { replicas: 41, template })), /pools\.maxReplicas.*pool\/replicas-cap/s)
    t.match(
      await kubectlRefused(['scale', 'sandboxwarmpools.extensions.agents.x-k8s.io', 'guarded', '--replicas=41']),
      /pool\/replicas-cap/,
    )
    for (const maxUnavailable of ['101%', '-1%', 'many', -1]) {
      const updateStrategy = { maxUnavailable }
      t.match(await refused(aSet('a', { replicas: 1, template, updateStrategy })), /updateStrategy\.maxUnavailable/)
    }
    const templateRef = { name: 'python' }
    t.match(await refused(aSet('a', { replicas: 1, template, templateRef })), /set\/template-choice/)
    t.match(await refused(aSet('a', { replicas: 1 })), /set\/template-choice/)
    t.match(await refused(aSet('n'.repeat(53), { replicas: 1, template })), /pool\/name/)
  })

  await t.test('the longest name, no replicas and a late template work', async (t) => {
    const longest = await createSet('n'.repeat(52), { replicas: 1, template })
    const none = await createSet('none', { replicas: 0, template })
    const late = await createSet('late', { replicas: 1, templateRef: { name: 'late' } })
    await untilFull(longest, 1)
    await until('a status', async () => progressing(await setOf('none'))?.reason === 'Complete')
    t.equal((await stock(none)).length, 0)
    await until('the complaint', async () => progressing(await setOf('late'))?.reason === 'TemplateNotFound')
    const spec = { podTemplate: template }
    await client.create(sandboxTemplateKind, { metadata: { name: 'late', namespace }, spec })
    await untilFull(late, 1)
  })

  await t.test('what came in while the webhook was off is told of in a condition and harms nothing', async (t) => {
    const templateRef = { name: 'python' }
    await whileUnregistered(client, async () => {
      await createSet('both', { replicas: 1, template, templateRef })
      await createSet('neither', { replicas: 1 })
      await createSet('percent', { replicas: 1, template, updateStrategy: { maxUnavailable: '150%' } })
      await createSet('huge', { replicas: 2_147_483_647, template })
      await createSet('n'.repeat(253), { replicas: 1, template })
    })
    for (const name of ['both', 'neither', 'percent']) {
      await until(`${name} to be told of`, async () => progressing(await setOf(name))?.reason === 'TemplateRejected')
      t.equal((await stock(await setOf(name))).length, 0)
    }
    await untilFull(await setOf('huge'), 40)
    await untilFull(await setOf('n'.repeat(253)), 1)
    t.notMatch(await product.log(), /"level":(50|60)/)
  })
})
