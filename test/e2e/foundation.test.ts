import t from 'tap'
import { sandboxClaimKind, sandboxKind, sandboxWarmPoolKind, type SandboxClaim } from '../../src/api/kinds.ts'
import { conditionTypes, labels } from '../../src/api/vocabulary.ts'
import { controllerOf } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { tally } from '../../devcluster/audit.ts'
import { startScene } from './scene.ts'

const namespace = 'default'

const stock = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: { name: python }
spec:
  podTemplate:
    spec:
      containers: [{ name: main, image: "python:3.13" }]
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: { name: python }
spec:
  replicas: 5
  sandboxTemplateRef: { name: python }
`

const aClaim = (name: string, spec: object = {}): SandboxClaim => ({
  metadata: { name, namespace },
  spec: { warmPoolRef: { name: 'python' }, ...spec },
})
const manifest = (claim: SandboxClaim) =>
  JSON.stringify({ apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxClaim', ...claim })

t.test('from an empty cluster to bound claims', async (t) => {
  const scene = await startScene(t)
  const { client, controlPlane, product, kubectl, until } = scene

  const readyClaim = async (name: string) => {
    const claim = await client.get(sandboxClaimKind, { namespace, name })
    return findCondition(claim.status?.conditions, conditionTypes.ready)?.status === 'True' ? claim : undefined
  }
  /** Judged by the stock itself: the pool's status may still be that of before the last change. */
  const poolIsAt = async (replicas: number) => {
    const [{ items }, pool] = await Promise.all([
      client.list(sandboxKind, { namespace, labelSelector: labels.warmPool }),
      client.get(sandboxWarmPoolKind, { namespace, name: 'python' }),
    ])
    const ready = items.filter(
      ({ status }) => findCondition(status?.conditions, conditionTypes.ready)?.status === 'True',
    )
    return items.length === replicas && ready.length === replicas && (pool.status?.readyReplicas ?? 0) === replicas
  }

  await t.test('a pool of five fills, and kubectl shows it', async (t) => {
    await kubectl(['apply', '-f', '-'], stock)
    await until('the pool', () => poolIsAt(5))
    t.match(await kubectl(['get', 'swp']), /NAME\s+READY\s+DESIRED\s+AGE\npython\s+5\s+5\s+/)
    t.match(
      await kubectl(['get', 'sandboxes']),
      /NAME\s+READY\s+REASON\s+AGE\npython-\w{10}\s+True\s+DependenciesReady/,
    )
  })

  await t.test('a claim is bound warm with two writes of the claim controller and no reads', async (t) => {
    const since = Date.now()
    const answer = await client.create(sandboxClaimKind, aClaim('warm'))
    await until('the claim', async () => (await readyClaim('warm')) !== undefined)
    await until('the pool', () => poolIsAt(5))
    const claim = await readyClaim('warm')
    const name = claim?.status?.sandbox?.name ?? ''
    const sandbox = await client.get(sandboxKind, { namespace, name })
    t.equal(controllerOf(sandbox)?.uid, answer.metadata.uid)
    t.equal(sandbox.metadata.labels?.[labels.launchType], 'warm')
    t.match(await kubectl(['get', 'sandboxclaims']), /NAME\s+READY\s+SANDBOX\s+REASON\s+AGE\nwarm\s+True\s+python-/)

    const requests = (await controlPlane.requestsOf(product.username, since)).filter(
      ({ resource }) => resource !== 'leases',
    )
    const counts = tally(requests)
    t.equal(counts['patch sandboxes'], 1, 'the adoption')
    t.equal(counts['patch sandboxclaims/status'], 1, 'the status')
    const reads = requests.filter(({ verb }) => verb === 'get' || verb === 'list')
    t.same(reads, [], 'no reads')
    t.equal(counts['create sandboxes'], 1, 'the refill')
    const onTheBoundSandbox = requests.filter(
      (request) => request.name === name && ['sandboxes/status', 'pods'].includes(request.resource),
    )
    t.ok(
      onTheBoundSandbox.length <= 2,
      `at most two writes of the Sandbox controller: ${JSON.stringify(tally(onTheBoundSandbox))}`,
    )
  })

  await t.test('an empty pool means a cold start, with the claim’s name', async (t) => {
    await kubectl(['scale', 'swp', 'python', '--replicas=0'])
    await until('the pool', () => poolIsAt(0))
    await client.create(sandboxClaimKind, aClaim('cold'))
    await until('the claim', async () => (await readyClaim('cold')) !== undefined)
    const sandbox = await client.get(sandboxKind, { namespace, name: 'cold' })
    t.equal(sandbox.metadata.labels?.[labels.launchType], 'cold')
    await kubectl(['scale', 'swp', 'python', '--replicas=5'])
    await until('the pool', () => poolIsAt(5))
  })

  await t.test('a claim that sets env against the template’s policy is refused with rule and advice', async (t) => {
    const refusal = await scene.kubectlRefused(
      ['create', '-f', '-'],
      manifest(aClaim('env', { env: [{ name: 'A', value: '1' }] })),
    )
    t.match(refusal, /claim\/env-policy/)
    t.match(refusal, /envVarsInjectionPolicy/)
  })

  await t.test('a forged pool member is refused', async (t) => {
    const [member] = (await client.list(sandboxKind, { namespace, labelSelector: labels.warmPool })).items
    const forged = {
      apiVersion: 'agents.x-k8s.io/v1beta1',
      kind: 'Sandbox',
      metadata: { name: 'forged', labels: member?.metadata.labels, ownerReferences: member?.metadata.ownerReferences },
      spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'evil' }] } } },
    }
    t.match(await scene.kubectlRefused(['create', '-f', '-'], JSON.stringify(forged)), /sandbox\/forged-pool/)
  })

  await t.test('killed in mid-claim and started again, it binds every claim once', async (t) => {
    const names = Array.from({ length: 12 }, (_, index) => `burst-${index}`)
    const creating = Promise.allSettled(names.map((name) => client.create(sandboxClaimKind, aClaim(name))))
    await until('the first of the burst', async () => {
      const { items } = await client.list(sandboxKind, { namespace, labelSelector: labels.claimUid })
      return items.length > 2
    })
    await product.process.stop('SIGKILL')
    await creating
    await product.start()
    for (const name of names) await createIfMissing(name)
    await until('every claim', async () =>
      (await Promise.all(names.map(readyClaim))).every((claim) => claim !== undefined),
    )

    const { items } = await client.list(sandboxKind, { namespace })
    const claims = await Promise.all(names.map((name) => client.get(sandboxClaimKind, { namespace, name })))
    for (const claim of claims) {
      const owned = items.filter((sandbox) => controllerOf(sandbox)?.uid === claim.metadata.uid)
      t.same(
        owned.map(({ metadata }) => metadata.name),
        [claim.status?.sandbox?.name],
        `${claim.metadata.name} has one sandbox`,
      )
    }
  })

  /** While the gate was down the API server refused creations: failurePolicy is Fail. */
  async function createIfMissing(name: string): Promise<void> {
    await client.create(sandboxClaimKind, aClaim(name)).catch((error: { code?: string }) => {
      if (error.code !== 'AlreadyExists') throw error
    })
  }

  await t.test('deleting a claim takes its sandbox and Pod along', async (t) => {
    const name = (await readyClaim('warm'))?.status?.sandbox?.name ?? ''
    await kubectl(['delete', 'sandboxclaim', 'warm'])
    await until(
      'the end of the sandbox',
      async () => !(await kubectl(['get', 'sandboxes,pods', '-o', 'name'])).includes(name),
    )
    t.pass('gone')
  })

  await t.test('under its own role it was never forbidden anything', async (t) => {
    const requests = await controlPlane.requestsOf(product.username)
    t.ok(requests.length > 50, 'the audit log has its requests')
    t.same(
      requests.filter(({ code }) => code === 403),
      [],
    )
  })
})
