import t from 'tap'
import { pods } from '../../src/api/core.ts'
import { sandboxClaimKind, sandboxKind, sandboxTemplateKind, sandboxWarmPoolKind } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { loadKubeConfig } from '../../src/kube/config.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { controllerOf } from '../../src/kube/object.ts'
import { createKubeClient } from '../../src/kube/rest-client.ts'
import { behaviourAnnotation } from '../../devcluster/behaviour.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import { configurationFile } from './configuration-file.ts'
import { aPodTemplate, namespace, startClaimStage } from './claim-stage.ts'
import { GivenUpError, PublishedClient } from './published-client.ts'

t.test('clients that were written for this API', { timeout: 150_000 }, async (t) => {
  const configuration = await configurationFile(t.testdir())
  const stage = await startClaimStage(t, { audit: false, flags: [`--config=${configuration.path}`] })
  const { client, controlPlane, kubectl, find, setUp, until, untilFull, untilGone, untilReady, untilCollecting } = stage
  const stuck = { ...aPodTemplate, metadata: { annotations: { [behaviourAnnotation]: 'pending' } } }
  await Promise.all([
    setUp('warm', 2),
    setUp('cold', 0, { envVarsInjectionPolicy: 'Allowed' }),
    setUp('strict', 0),
    setUp('stuck', 0, { podTemplate: stuck }),
  ])

  // An agent platform's own account: it may do what the client does, and nothing else.
  await kubectl(['create', 'serviceaccount', 'platform'])
  const rights = [
    ['claims', '--verb=create,get,list,watch,delete', '--resource=sandboxclaims.extensions.agents.x-k8s.io'],
    ['sandboxes', '--verb=get,list,watch', '--resource=sandboxes.agents.x-k8s.io'],
  ] as const
  for (const [name, ...flags] of rights) {
    await kubectl(['create', 'role', name, ...flags])
    await kubectl(['create', 'rolebinding', name, `--role=${name}`, `--serviceaccount=${namespace}:platform`])
  }
  const kubeconfig = await controlPlane.serviceAccountKubeconfig(namespace, 'platform')
  const own = createKubeClient(loadKubeConfig({ kubeconfig }), { userAgent: 'published-client' })
  t.teardown(() => own.close())
  const platform = new PublishedClient(own, namespace)

  await untilCollecting()
  for (const [how, pool] of [
    ['warm', 'warm'],
    ['cold', 'cold'],
  ] as const) {
    await t.test(`one opens a sandbox, ${how}, finds its Pod and closes it`, async (t) => {
      const session = await platform.open(pool)
      const { claim, sandbox, pod } = await untilReady(session.claimName)
      t.match(session.claimName, /^sandbox-claim-\w+$/)
      t.equal(session.sandboxName, sandbox.metadata.name)
      t.equal(session.podName, pod.metadata.name)
      t.equal(session.podIP, pod.status?.podIP)
      t.equal(sandbox.metadata.labels?.[labels.launchType], how)
      t.equal(session.sandboxName === session.claimName, how === 'cold')
      const marks = { [labels.createdBy]: 'python-client', [labels.claimUid]: claim.metadata.uid }
      t.match(sandbox.metadata.labels, marks)
      await until('the marks on the Pod', async () => {
        const { metadata } = (await find(pods, session.podName)) ?? {}
        return Object.entries(marks).every(([key, value]) => metadata?.labels?.[key] === value)
      })
      await platform.close(session)
      await untilGone(sandboxClaimKind, session.claimName)
      await untilGone(sandboxKind, session.sandboxName)
      await untilGone(pods, session.podName)
    })
  }

  await t.test('one with variables gets a cold sandbox that has them', async (t) => {
    const session = await platform.open('cold', { env: [{ name: 'TASK', value: '7' }] })
    const { pod } = await untilReady(session.claimName)
    t.match(pod.spec?.containers[0]?.env, [{ name: 'TASK', value: '7' }])
    await platform.close(session)
  })

  await t.test('one gives up when it is told that there is no use in waiting', async (t) => {
    const reasonOf = (opening: Promise<unknown>) =>
      opening.then(
        () => 'opened',
        (error: unknown) => (error instanceof GivenUpError ? error.reason : String(error)),
      )
    await client.create(sandboxWarmPoolKind, {
      metadata: { name: 'headless', namespace },
      spec: { replicas: 0, sandboxTemplateRef: { name: 'nothing' } },
    })
    const [noPool, noTemplate, expired] = await Promise.all([
      reasonOf(platform.open('nowhere')),
      reasonOf(platform.open('headless')),
      reasonOf(platform.open('stuck', { lifecycle: { shutdownTime: new Date(Date.now() + 3_000).toISOString() } })),
    ])
    t.equal(noPool, 'WarmPoolNotFound')
    t.equal(noTemplate, 'TemplateNotFound')
    t.equal(expired, 'ClaimExpired')
  })

  await t.test('what admission refuses, it is told by the API server at once', async (t) => {
    const refused = platform.open('strict', { env: [{ name: 'A', value: '1' }] })
    await t.rejects(refused, { message: /envVarsInjectionPolicy.*\(claim\/env-policy\)/ })
    await refused.catch((error: unknown) => t.ok(isKubeError(error, 'Forbidden')))
  })

  await t.test('of 100 at once on a pool of 50, 50 are served warm and 50 cold, and none shares', async (t) => {
    await setUp('crowd', 49)
    // Claims that come while others have theirs already are right to take what was refilled meanwhile. Without refill it
    // shows how many take from the stock. The one sandbox that the rate allows at once is the fiftieth.
    await configuration.use(stage.product, { pools: { maxRefillPerSecond: 0.001 } })
    await kubectl(['scale', 'swp', 'crowd', '--replicas=50'])
    await untilFull('crowd', 50)
    const { items: before } = await client.list(sandboxKind, { namespace, labelSelector: labels.warmPool })
    const pool = await find(sandboxWarmPoolKind, 'crowd')
    const stock = before.filter((sandbox) => controllerOf(sandbox)?.uid === pool?.metadata.uid)
    t.equal(stock.length, 50)

    const sessions = await Promise.all(Array.from({ length: 100 }, () => platform.open('crowd')))
    for (const key of ['claimName', 'sandboxName', 'podName', 'podIP'] as const) {
      t.equal(new Set(sessions.map((session) => session[key])).size, 100, `${key}: each has its own`)
    }
    const [{ items: sandboxes }, { items: claims }] = await Promise.all([
      client.list(sandboxKind, { namespace }),
      client.list(sandboxClaimKind, { namespace }),
    ])
    const given = sessions.map(({ claimName }) => {
      const claim = claims.find(({ metadata }) => metadata.name === claimName)
      const owned = sandboxes.filter((sandbox) => controllerOf(sandbox)?.uid === claim?.metadata.uid)
      t.same(
        owned.map(({ metadata }) => metadata.name),
        [claim?.status?.sandbox?.name],
        `${claimName} has one sandbox, which its status names`,
      )
      return owned[0]
    })
    const uids = new Set(given.map((sandbox) => sandbox?.metadata.uid))
    t.ok(
      stock.every(({ metadata }) => uids.has(metadata.uid)),
      'all of the stock was handed out',
    )
    const launched = Object.groupBy(given, (sandbox) => sandbox?.metadata.labels?.[labels.launchType] ?? 'neither')
    t.same([launched['warm']?.length, launched['cold']?.length], [50, 50])

    await configuration.use(stage.product, {})
    await Promise.all(sessions.map((session) => platform.close(session)))
    await untilFull('crowd', 50)
    const patience = { withinMs: 60_000, everyMs: 250 }
    const leftovers = async () => {
      const { items } = await client.list(sandboxKind, { namespace })
      return items.filter(({ metadata }) => uids.has(metadata.uid))
    }
    await waitUntil('the end of the sandboxes', async () => (await leftovers()).length === 0, patience)
    await client.delete(sandboxWarmPoolKind, { namespace, name: 'crowd' })
    await client.delete(sandboxTemplateKind, { namespace, name: 'crowd' })
  })
})
