import t from 'tap'
import { behaviourAnnotation } from '../../devcluster/behaviour.ts'
import { pods } from '../../src/api/core.ts'
import { sandboxClaimKind, sandboxKind, type SandboxClaim } from '../../src/api/kinds.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { controllerOf } from '../../src/kube/object.ts'
import { aPodTemplate, claimManifest, namespace, readyOf, startClaimStage } from './claim-stage.ts'
import { follow } from './pool-watch.ts'

const together = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: { name: together }
spec: { warmPoolRef: { name: together } }
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: { name: together }
spec: { replicas: 2, sandboxTemplateRef: { name: together } }
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: { name: together }
spec:
  podTemplate:
    spec: { containers: [{ name: main, image: "box:1" }] }
`

/** Without repetitions: the reasons of Ready that a claim went through. */
function reasonsOf(told: readonly SandboxClaim[]): (string | undefined)[] {
  const reasons = told.map((claim) => readyOf(claim)?.reason)
  return reasons.filter((reason, i) => i === 0 || reason !== reasons[i - 1])
}

t.test('what claims go through', { timeout: 150_000 }, async (t) => {
  const stage = await startClaimStage(t, { audit: false })
  const { client, kubectl, find, setUp, claim, until, untilReady, untilReason, untilGone, untilFull, untilCollecting } =
    stage
  const slow = { ...aPodTemplate, metadata: { annotations: { [behaviourAnnotation]: 'stop-delay=1000' } } }
  await Promise.all([setUp('warm', 2), setUp('slow', 1, { podTemplate: slow }), setUp('empty', 0)])
  const { changes } = await follow(t, client, sandboxClaimKind, namespace)
  const told = (name: string) => changes.flatMap(({ object }) => (object.metadata.name === name ? [object] : []))

  /** Nothing more is being made, so that a quota counts what the test counts. */
  const untilStocked = () => Promise.all([untilFull('warm', 2), untilFull('slow', 1), untilFull('together', 2)])

  await t.test('case 27: template, pool and claim in one apply, the claim first', async (t) => {
    t.match(await kubectl(['apply', '-f', '-'], together), /^(.* created\n){3}$/)
    const { claim: bound } = await untilReady('together')
    const { items } = await client.list(sandboxKind, { namespace })
    t.equal(items.filter((sandbox) => controllerOf(sandbox)?.uid === bound.metadata.uid).length, 1)
    t.notOk(reasonsOf(told('together')).includes('WarmPoolNotFound'))
  })

  await t.test('a pool that is missing is said to be after five seconds, and taken up when it comes', async (t) => {
    const { stderr } = await stage.controlPlane.kubectl(['create', '-f', '-'], {
      input: claimManifest('later', 'patient'),
    })
    t.match(stderr, /Warning: .*later does not exist/)
    const missing = await untilReason('patient', 'WarmPoolNotFound')
    t.match(missing.message, /later/)
    const created = Date.parse((await find(sandboxClaimKind, 'patient'))?.metadata.creationTimestamp ?? '')
    t.ok(Date.parse(missing.lastTransitionTime) >= created + 5_000, 'not before it is certain')
    await setUp('later', 1)
    await untilReady('patient')
    t.match(reasonsOf(told('patient')).slice(0, 2), [undefined, 'WarmPoolNotFound'])
  })

  await t.test('case 14: a drained Pod shows on the claim, without addresses, until there is another', async (t) => {
    await claim('slow', 'drained')
    const { pod, sandbox } = await untilReady('drained')
    const node = pod.spec?.nodeName ?? ''
    const from = told('drained').length
    const ofThisPod = `${labels.sandboxNameHash}=${pod.metadata.labels?.[labels.sandboxNameHash]}`
    await kubectl(['drain', node, '--force', '--ignore-daemonsets', `--pod-selector=${ofThisPod}`])
    await kubectl(['uncordon', node])
    await until('another Pod', async () => {
      const now = await untilReady('drained')
      return (
        now.pod.metadata.uid !== pod.metadata.uid && now.claim.status?.sandbox?.podIPs?.[0] === now.pod.status?.podIP
      )
    })
    const since = told('drained').slice(from)
    const down = since.filter((each) => readyOf(each)?.status === 'False')
    t.ok(down.length > 0, 'it was not ready in between')
    t.ok(
      down.every(
        ({ status }) => status?.sandbox?.podIPs === undefined && status?.sandbox?.name === sandbox.metadata.name,
      ),
      'and had no address then, but its sandbox',
    )
    t.equal((await untilReady('drained')).sandbox.metadata.uid, sandbox.metadata.uid)
  })

  await untilCollecting()

  await t.test('a bound sandbox that somebody deletes is missed, then replaced', async (t) => {
    await untilFull('warm', 2)
    await claim('warm', 'robbed')
    const { sandbox } = await untilReady('robbed')
    await kubectl(['delete', 'sandbox', sandbox.metadata.name ?? ''])
    await until('another sandbox', async () => {
      const now = await untilReady('robbed')
      return now.sandbox.metadata.uid !== sandbox.metadata.uid
    })
    await until('the news', async () => readyOf(told('robbed').at(-1) as SandboxClaim)?.status === 'True')
    const missed = told('robbed').find((each) => readyOf(each)?.reason === 'SandboxMissing')
    t.match(missed && readyOf(missed), {
      status: 'False',
      message: `Sandbox ${sandbox.metadata.name} no longer exists.`,
    })
    t.equal(missed?.status?.sandbox, undefined, 'its name and addresses are not kept')
    const now = await untilReady('robbed')
    t.equal(now.pod.metadata.name, now.sandbox.metadata.annotations?.[annotations.podName])
    await untilGone(pods, sandbox.metadata.name ?? '')
    t.same(now.claim.status?.sandbox, { name: now.sandbox.metadata.name, podIPs: [now.pod.status?.podIP] })
  })

  await t.test('a claim whose name is taken is served warm; with an empty pool it says who has the name', async (t) => {
    for (const name of ['taken', 'squatted']) {
      const spec = { podTemplate: aPodTemplate }
      await client.create(sandboxKind, { metadata: { name, namespace }, spec })
    }
    await claim('warm', 'taken')
    const { sandbox } = await untilReady('taken')
    t.not(sandbox.metadata.name, 'taken')
    t.equal(sandbox.metadata.labels?.[labels.launchType], 'warm')

    const before = await find(sandboxKind, 'squatted')
    await claim('empty', 'squatted')
    t.match((await untilReason('squatted', 'SandboxNameTaken')).message, /squatted/)
    const squatter = await find(sandboxKind, 'squatted')
    t.same(squatter?.metadata.ownerReferences, before?.metadata.ownerReferences, 'which is left alone')
    t.equal(squatter?.metadata.uid, before?.metadata.uid)
    await kubectl(['delete', 'sandbox', 'squatted', '--wait=false'])
    t.equal((await untilReady('squatted')).sandbox.metadata.name, 'squatted')
  })

  await t.test(
    'case 21: the second claim says which quota is full, and is served when the first makes room',
    async (t) => {
      await untilStocked()
      const used = (await client.list(pods, { namespace })).items.length
      await kubectl(['create', 'quota', 'few-pods', `--hard=pods=${used + 1}`])
      await until('the quota', async () =>
        /\d/.test(await kubectl(['get', 'quota', 'few-pods', '-o', 'jsonpath={.status.used.pods}'])),
      )
      await claim('empty', 'quota-first')
      await untilReady('quota-first')
      await claim('empty', 'quota-second')
      t.match((await untilReason('quota-second', 'QuotaExceeded')).message, /few-pods/)
      await kubectl(['delete', 'sandboxclaim', 'quota-first'])
      await untilGone(pods, 'quota-first')
      await untilReady('quota-second')
      await kubectl(['delete', 'quota', 'few-pods'])
    },
  )

  await t.test('case 21: the same goes for a quota of Sandboxes, and its end', async (t) => {
    await untilStocked()
    const used = (await client.list(sandboxKind, { namespace })).items.length
    const resource = 'count/sandboxes.agents.x-k8s.io'
    await kubectl(['create', 'quota', 'few-sandboxes', `--hard=${resource}=${used}`])
    await until('the quota', async () => {
      const { status } = JSON.parse(await kubectl(['get', 'quota', 'few-sandboxes', '-o', 'json'])) as {
        status: { used?: Record<string, string> }
      }
      return Number(status.used?.[resource]) >= used
    })
    await claim('empty', 'no-sandbox')
    t.match((await untilReason('no-sandbox', 'QuotaExceeded')).message, /few-sandboxes/)
    t.equal(await find(sandboxKind, 'no-sandbox'), undefined)
    await kubectl(['delete', 'quota', 'few-sandboxes'])
    await untilReady('no-sandbox')
  })
})
