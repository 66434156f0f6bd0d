import t from 'tap'
import { persistentVolumeClaims, pods } from '../../src/api/core.ts'
import { type SandboxClaim, sandboxClaimKind, sandboxKind, type SandboxClaimSpec } from '../../src/api/kinds.ts'
import { conditionTypes } from '../../src/api/vocabulary.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { behaviourAnnotation } from '../../devcluster/behaviour.ts'
import { aPodTemplate, namespace, readyOf, startClaimStage } from './claim-stage.ts'
import { follow } from './pool-watch.ts'

type Lifecycle = NonNullable<SandboxClaimSpec['lifecycle']>

const hourMs = 3_600_000
const inTime = (ms: number) => new Date(Date.now() + ms).toISOString()
const finishedOf = ({ status }: SandboxClaim) => findCondition(status?.conditions, conditionTypes.finished)
const isMarked = (claim: SandboxClaim) => readyOf(claim)?.reason === 'ClaimExpired'

t.test('how claims end', { timeout: 150_000 }, async (t) => {
  const stage = await startClaimStage(t, { audit: false })
  const {
    client,
    nodes,
    kubectl,
    find,
    setUp,
    claim,
    patch,
    until,
    untilReady,
    untilReason,
    untilGone,
    untilCollecting,
  } = stage
  const data = {
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  const slow = { ...aPodTemplate, metadata: { annotations: { [behaviourAnnotation]: 'stop-delay=3000' } } }
  await Promise.all([
    setUp('quick', 2),
    setUp('slow', 1, { podTemplate: slow }),
    setUp('cold', 0),
    setUp('disk', 1, { volumeClaimTemplates: [data] }),
  ])
  const live = (name: string, lifecycle: Lifecycle) => patch(sandboxClaimKind, name, { spec: { lifecycle } })
  /** What the API server told of one claim, in order. */
  const watchClaims = async (t: Parameters<typeof follow>[0]) => {
    const { changes } = await follow(t, client, sandboxClaimKind, namespace)
    return (name: string) => changes.filter(({ object }) => object.metadata.name === name)
  }

  await t.test(
    'suspended, a claimed sandbox gives up its Pod and keeps its volume; resumed, it has both',
    async (t) => {
      await claim('disk', 'sleeper')
      const before = await untilReady('sleeper')
      const name = before.sandbox.metadata.name ?? ''
      const volume = await find(persistentVolumeClaims, `data-${name}`)
      t.ok(volume)
      t.ok(before.claim.status?.sandbox?.podIPs?.length)
      await patch(sandboxKind, name, { spec: { operatingMode: 'Suspended' } })
      await untilReason('sleeper', 'SandboxSuspended')
      await untilGone(pods, name)
      await until('the addresses to go', async () => {
        const status = (await find(sandboxClaimKind, 'sleeper'))?.status
        return status?.sandbox?.name === name && status.sandbox.podIPs === undefined
      })
      await patch(sandboxKind, name, { spec: { operatingMode: 'Running' } })
      const after = await untilReady('sleeper')
      t.equal(after.sandbox.metadata.uid, before.sandbox.metadata.uid)
      t.not(after.pod.metadata.uid, before.pod.metadata.uid)
      t.same(after.claim.status?.sandbox?.podIPs, [after.pod.status?.podIP])
      const kept = await find(persistentVolumeClaims, `data-${name}`)
      t.equal(kept?.metadata.uid, volume?.metadata.uid)
      t.equal(kept?.status?.phase, 'Bound')
    },
  )

  await t.test('case 13: of shutdownTime and ttlSecondsAfterFinished the earlier counts', async (t) => {
    await Promise.all([claim('cold', 'by-ttl'), claim('cold', 'by-time')])
    await Promise.all([untilReady('by-ttl'), untilReady('by-time')])
    const shutdownTime = inTime(4_000)
    await live('by-time', { shutdownTime, ttlSecondsAfterFinished: 3_600 })
    await live('by-ttl', { shutdownTime: inTime(hourMs), ttlSecondsAfterFinished: 2 })
    for (const name of ['by-ttl', 'by-time']) nodes.setBehaviour(namespace, name, { outcome: 'succeed' })
    await untilReason('by-ttl', 'ClaimExpired')
    const finished = finishedOf((await find(sandboxClaimKind, 'by-ttl')) as SandboxClaim)
    t.ok(Date.now() >= Date.parse(finished?.lastTransitionTime ?? '') + 2_000, 'not before the first')
    await untilReason('by-time', 'ClaimExpired')
    t.ok(Date.now() >= Date.parse(shutdownTime), 'not before the second')
    t.match(finishedOf((await find(sandboxClaimKind, 'by-time')) as SandboxClaim), { status: 'True' })
  })

  await t.test('a claim that is extended lives past its first time', async (t) => {
    await Promise.all([claim('cold', 'extended'), claim('cold', 'witness')])
    await Promise.all([untilReady('extended'), untilReady('witness')])
    await live('extended', { shutdownTime: inTime(4_000), shutdownPolicy: 'Delete' })
    await live('witness', { shutdownTime: inTime(5_000), shutdownPolicy: 'Delete' })
    await live('extended', { shutdownTime: inTime(hourMs) })
    await untilGone(sandboxClaimKind, 'witness')
    t.equal((await stage.ready('extended'))?.status, 'True')
  })

  await untilCollecting()
  await t.test('Delete: the claim says that it has expired, then it goes with all that it had', async (t) => {
    const told = await watchClaims(t)
    await claim('quick', 'short', { lifecycle: { shutdownTime: inTime(6_000), shutdownPolicy: 'Delete' } })
    const { sandbox, claim: bound } = await untilReady('short')
    const name = sandbox.metadata.name ?? ''
    await untilGone(sandboxClaimKind, 'short')
    await untilGone(sandboxKind, name)
    await untilGone(pods, name)
    await until('the news', async () => told('short').at(-1)?.kind === 'deleted')
    const marked = told('short').find(({ object }) => isMarked(object))
    t.ok(marked, 'marked before it went')
    t.ok(marked?.object.status?.sandbox?.name, 'with the name of its sandbox')
    t.equal(marked?.object.metadata.deletionTimestamp, undefined)
    // Events are written after the fact.
    const ofClaim = `--field-selector=involvedObject.uid=${bound.metadata.uid}`
    const isTold = async () => /"reason": "ClaimExpired"/.test(await kubectl(['get', 'events', '-o', 'json', ofClaim]))
    await until('the event', isTold)
  })

  await t.test('DeleteForeground: the claim is there, going, until its Pod has ended', async (t) => {
    await claim('slow', 'visible')
    const { sandbox } = await untilReady('visible')
    const name = sandbox.metadata.name ?? ''
    await live('visible', { shutdownTime: inTime(1_000), shutdownPolicy: 'DeleteForeground' })
    await until('the end to begin', async () => {
      const going = await find(sandboxClaimKind, 'visible')
      return going?.metadata.deletionTimestamp !== undefined
    })
    t.ok(await find(pods, name), 'its Pod takes its time to stop')
    t.match((await find(sandboxClaimKind, 'visible'))?.metadata.finalizers, ['foregroundDeletion'])
    await untilGone(sandboxClaimKind, 'visible')
    t.equal(await find(sandboxKind, name), undefined)
    t.equal(await find(pods, name), undefined)
  })

  await t.test('case 12: Retain of an adopted sandbox takes the sandbox and keeps the claim', async (t) => {
    const told = await watchClaims(t)
    await claim('slow', 'kept')
    const { sandbox } = await untilReady('kept')
    const name = sandbox.metadata.name ?? ''
    t.not(name, 'kept')
    await live('kept', { shutdownTime: inTime(1_000) })
    await untilGone(sandboxKind, name)
    await untilGone(pods, name)
    await until('the name to go', async () => (await find(sandboxClaimKind, 'kept'))?.status?.sandbox === undefined)
    t.match(await find(sandboxClaimKind, 'kept'), { status: { conditions: [{ reason: 'ClaimExpired' }] } })
    t.match(await kubectl(['get', 'sandboxclaim', 'kept']), /kept +False +ClaimExpired/)
    const marked = told('kept').find(({ object }) => isMarked(object))
    t.equal(marked?.object.status?.sandbox?.name, name, 'the mark still names the sandbox')
    await stage.untilFull('slow', 1)
    t.equal((await find(sandboxClaimKind, 'kept'))?.status?.sandbox, undefined, 'and it is not bound again')
  })

  await t.test('ttlSecondsAfterFinished counts from the end of the Pod: succeeded, then deleted', async (t) => {
    const told = await watchClaims(t)
    await claim('quick', 'task', { lifecycle: { ttlSecondsAfterFinished: 2, shutdownPolicy: 'Delete' } })
    const { sandbox } = await untilReady('task')
    const name = sandbox.metadata.name ?? ''
    nodes.setBehaviour(namespace, name, { outcome: 'succeed' })
    await untilGone(sandboxClaimKind, 'task')
    const goneAt = Date.now()
    await until('the news', async () => told('task').at(-1)?.kind === 'deleted')
    const stages = told('task').map(({ object }) => readyOf(object)?.reason)
    t.same([...new Set(stages)].slice(-3), ['DependenciesReady', 'PodSucceeded', 'ClaimExpired'])
    const finished = finishedOf(told('task').at(-1)?.object as SandboxClaim)
    t.match(finished, { status: 'True', reason: 'PodSucceeded' })
    t.ok(goneAt >= Date.parse(finished?.lastTransitionTime ?? '') + 2_000, 'not before its time')
    await untilGone(pods, name)
  })

  await t.test(
    'a Pod that failed: the claim is retained, and says how it ended after its sandbox has gone',
    async (t) => {
      await claim('cold', 'failing', { lifecycle: { ttlSecondsAfterFinished: 1 } })
      await untilReady('failing')
      nodes.failPod(namespace, 'failing')
      await untilGone(sandboxKind, 'failing')
      await untilGone(pods, 'failing')
      await untilReason('failing', 'ClaimExpired')
      t.match(finishedOf((await find(sandboxClaimKind, 'failing')) as SandboxClaim), {
        status: 'True',
        reason: 'PodFailed',
      })
    },
  )
})
