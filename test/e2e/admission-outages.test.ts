import t from 'tap'
import { secrets } from '../../src/api/core.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxClaim,
} from '../../src/api/kinds.ts'
import { conditionTypes, labels } from '../../src/api/vocabulary.ts'
import { install } from '../../src/cli/manifests.ts'
import { controllerOf, type KubeObject, type ObjectMeta, type Resource } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { createInLoop } from './create-in-loop.ts'
import { whileUnregistered } from './registration.ts'
import { startScene } from './scene.ts'

t.setTimeout(150_000)

const namespace = 'default'
const group = 'extensions.agents.x-k8s.io/v1beta1'
const container = { name: 'main', image: 'python:3.13' }

const template = (name: string, change: object = {}) => ({
  apiVersion: group,
  kind: 'SandboxTemplate',
  metadata: { name, namespace },
  spec: {
    envVarsInjectionPolicy: 'Overrides' as const,
    podTemplate: { spec: { containers: [{ ...container, ...change }] } },
  },
})
const privileged = { securityContext: { privileged: true } }
const pool = (name: string, replicas: number, from = name) => ({
  apiVersion: group,
  kind: 'SandboxWarmPool',
  metadata: { name, namespace },
  spec: { replicas, sandboxTemplateRef: { name: from } },
})
const claim = (name: string, from: string, spec: object = {}) => ({
  apiVersion: group,
  kind: 'SandboxClaim',
  metadata: { name, namespace },
  spec: { warmPoolRef: { name: from }, ...spec },
})
const manifests = (...objects: object[]) => objects.map((object) => JSON.stringify(object)).join('\n')

t.test('when the gate is away, and what came in while nobody was asked', { timeout: 140_000 }, async (t) => {
  const { client, controlPlane, product, kubectl, kubectlRefused, until } = await startScene(t, { audit: false })
  const readyOf = async (name: string) => {
    const { status } = await client.get(sandboxClaimKind, { namespace, name })
    return findCondition(status?.conditions, conditionTypes.ready)
  }
  const isBound = async (name: string) => (await readyOf(name))?.status === 'True'
  const sandboxes = async () => (await client.list(sandboxKind, { namespace })).items
  const membersOf = async (name: string) =>
    (await sandboxes()).filter(
      (sandbox) => controllerOf(sandbox)?.name === name && sandbox.metadata.labels?.[labels.warmPool],
    )
  const isFull = async (name: string) => {
    const { spec, status } = await client.get(sandboxWarmPoolKind, { namespace, name })
    return status?.readyReplicas === spec.replicas && (await membersOf(name)).length === spec.replicas
  }

  const isRunning = async (name: string) => {
    const { status } = await client.get(sandboxKind, { namespace, name })
    return findCondition(status?.conditions, conditionTypes.ready)?.status === 'True'
  }

  await t.test('template, pool and claim may come in one file, in any order', async () => {
    await kubectl(['apply', '-f', '-'], manifests(template('python'), pool('python', 1), claim('in-order', 'python')))
    const backwards = manifests(claim('backwards', 'late'), pool('late', 1), template('late'))
    await kubectl(['apply', '-f', '-'], backwards)
    await until('both claims', async () => (await isBound('in-order')) && (await isBound('backwards')))
  })

  await t.test(
    'the Secret with the authority may be emptied: it is mended, and nobody is refused for it',
    async (t) => {
      const ref = { namespace: install.namespace, name: install.authoritySecret }
      const before = await client.get(secrets, ref)
      const creating = createInLoop(client, (round) => [sandboxClaimKind, claim(`mending-${round}`, 'none')], {
        dryRun: true,
      })
      await kubectl(['patch', 'secret', ref.name, `-n=${ref.namespace}`, '--type=merge', '-p', '{"data":null}'])
      // The Secret is looked at each minute, and whenever a registration has changed.
      await kubectl(['annotate', 'validatingwebhookconfiguration', install.registration, 'example.com/touched=yes'])
      await until('the repair', async () => Object.keys((await client.get(secrets, ref)).data ?? {}).length > 0)
      t.same(Object.keys((await client.get(secrets, ref)).data ?? {}), Object.keys(before.data ?? {}))
      const { created, refusals } = await creating.end()
      t.ok(created > 0)
      t.same(refusals, [])
    },
  )

  await t.test('with every replica stopped, only what was to be judged is held up', async (t) => {
    await controlPlane.createNamespace('leaving')
    const inLeaving = ['-n=leaving', '-f', '-']
    await kubectl(['apply', ...inLeaving], manifests(...[template('t'), pool('t', 1), claim('c', 't')].map(anywhere)))
    await until('the claim in the namespace', async () => {
      const { status } = await client.get(sandboxClaimKind, { namespace: 'leaving', name: 'c' })
      return findCondition(status?.conditions, conditionTypes.ready)?.status === 'True'
    })
    await product.process.stop('SIGTERM')

    const refusal = await kubectlRefused(['create', '-f', '-'], manifests(claim('unheard', 'python')))
    t.match(refusal, /failed calling webhook/)
    const own = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'replica', namespace: install.namespace, labels: { [labels.sandboxNameHash]: 'x' } },
      spec: { containers: [container] },
    }
    t.match(await kubectl(['create', '-f', '-'], manifests(own)), /created/, 'its own namespace is not blocked')
    await kubectl(['delete', 'pod', 'replica', `-n=${install.namespace}`, '--wait=false'])
    await kubectl(['run', 'bystander', '--image=python:3.13'])
    await kubectl(['delete', 'sandboxclaim', 'backwards'])
    await kubectl(['delete', 'namespace', 'leaving', '--timeout=60s'])
    await product.start()
    await kubectl(['create', '-f', '-'], manifests(claim('heard', 'python')))
    await until('the claim', () => isBound('heard'))
  })

  await t.test('with the gate stopped and started, nothing gets in that an enforced rule forbids', async (t) => {
    // A call to a gate that is away takes the API server seconds: it tries again before it gives up.
    const many = { workers: 8 }
    const bad = createInLoop(client, (round) => badObject(`bad-${round}`, round), many)
    const good = createInLoop(client, (round) => [sandboxTemplateKind, template(`good-${round}`)], many)
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const before = good.created()
      await until('creations', async () => good.created() > before)
      await product.process.stop(signal)
      await product.start()
    }
    const before = good.created()
    await until('creations after the last start', async () => good.created() > before)
    const [{ created, refusals }, goods] = await Promise.all([bad.end(), good.end()])
    t.equal(created, 0)
    const byRule = refusals.filter((refusal) => /\((template\/pod-security|sandbox\/forged-pool)\)/.test(refusal))
    const byAbsence = refusals.filter((refusal) => refusal.includes('failed calling webhook'))
    t.ok(byRule.length > 0 && byAbsence.length > 0, 'some were judged, and some came while nobody was there')
    t.same(
      refusals.filter((refusal) => !byRule.includes(refusal) && !byAbsence.includes(refusal)),
      [],
    )
    t.same(
      goods.refusals.filter((refusal) => !refusal.includes('failed calling webhook')),
      [],
    )
    const templates = (await client.list(sandboxTemplateKind, { namespace })).items
    t.notOk(templates.some(({ metadata }) => metadata.name?.startsWith('bad')))
    t.notOk((await sandboxes()).some(({ metadata }) => metadata.name?.startsWith('bad')))
  })

  const slipped = {
    'claim/env-reserved': claim('slipped-env', 'python', { env: [{ name: 'LD_PRELOAD', value: '/x.so' }] }),
    'claim/runtime-annotation': claim('slipped-runtime', 'python', {
      additionalPodMetadata: { annotations: { 'io.katacontainers.config.hypervisor.kernel_params': 'x' } },
    }),
    'claim/router-label': claim('slipped-router', 'python', {
      additionalPodMetadata: { labels: { app: 'sandbox-router' } },
    }),
    'claim/volume-policy': claim('slipped-volume', 'python', {
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
    }),
  }

  await t.test('a claim that slipped past is refused by the reconciler, by the same rule', async (t) => {
    await until('the pool', () => isFull('python'))
    await whileUnregistered(client, async () => kubectl(['create', '-f', '-'], manifests(...Object.values(slipped))))
    for (const [rule, { metadata }] of Object.entries(slipped)) {
      await until(`the verdict on ${metadata.name}`, async () => (await readyOf(metadata.name)) !== undefined)
      const ready = await readyOf(metadata.name)
      t.equal(ready?.status, 'False')
      t.match(ready?.message, `(${rule})`)
      t.notOk((await sandboxes()).some((sandbox) => controllerOf(sandbox)?.name === metadata.name))
    }
  })

  await t.test('no sandbox is made from a template that slipped past', async (t) => {
    await whileUnregistered(client, async () =>
      kubectl(['create', '-f', '-'], manifests(template('root', privileged), pool('root', 1), claim('rooted', 'root'))),
    )
    await until('the verdict on the pool', async () => {
      const { status } = await client.get(sandboxWarmPoolKind, { namespace, name: 'root' })
      return (status?.conditions ?? []).some(({ message }) => message.includes('(template/pod-security)'))
    })
    await until('the verdict on the claim', async () =>
      ((await readyOf('rooted'))?.message ?? '').includes('(template/pod-security)'),
    )
    t.same(await membersOf('root'), [])
    t.notOk((await sandboxes()).some((sandbox) => controllerOf(sandbox)?.name === 'rooted'))
  })

  await t.test('a forged member and a forged binding that slipped past are handed to nobody', async (t) => {
    await until('the pool', () => isFull('python'))
    const [real] = await membersOf('python')
    if (!real) return t.fail('the pool is empty')
    await whileUnregistered(client, async () => {
      // Everything of a true member: its labels, its proof, its owner with the right UID.
      await client.create(sandboxKind, {
        ...forged(real.metadata.labels ?? {}),
        metadata: { ...chosen(real), ...forgedMetadata('forged-member') },
      })
      await client.create(sandboxClaimKind, claim('victim', 'nothing-yet'))
      const victim = await client.get(sandboxClaimKind, { namespace, name: 'victim' })
      await client.create(sandboxKind, {
        ...forged({}),
        metadata: {
          ...forgedMetadata('forged-binding'),
          labels: { [labels.claimUid]: victim.metadata.uid ?? '' },
          annotations: real.metadata.annotations ?? {},
          ownerReferences: [ownedBy(victim)],
        },
      })
    })
    // They run like any Sandbox, and look as ready as those of the pool.
    for (const name of ['forged-member', 'forged-binding']) await until(name, () => isRunning(name))
    // Two more than there are true members in stock.
    await kubectl(
      ['create', '-f', '-'],
      manifests(claim('next-1', 'python'), claim('next-2', 'python'), claim('next-3', 'python')),
    )
    await kubectl(['create', '-f', '-'], manifests(template('nothing-yet'), pool('nothing-yet', 1)))
    for (const name of ['next-1', 'next-2', 'next-3', 'victim']) await until(`claim ${name}`, () => isBound(name))
    for (const name of ['next-1', 'next-2', 'next-3', 'victim']) {
      const { status } = await client.get(sandboxClaimKind, { namespace, name })
      t.notMatch(status?.sandbox?.name ?? 'none', /^(forged|none)/, `${name} has ${status?.sandbox?.name}`)
    }
    const forgedOne = (await sandboxes()).find(({ metadata }) => metadata.name === 'forged-member')
    return t.equal(controllerOf(forgedOne ?? { metadata: {} })?.kind, 'SandboxWarmPool', 'never adopted')
  })
})

function badObject(name: string, round: number): [Resource, KubeObject] {
  if (round % 2 === 0) return [sandboxTemplateKind, template(name, privileged)]
  const sandbox = forged({ [labels.warmPool]: 'feedbeef' })
  return [sandboxKind, { ...sandbox, metadata: { ...sandbox.metadata, name } }]
}

/** What the server does not choose. */
function chosen({ metadata }: Sandbox): ObjectMeta {
  const { labels: own = {}, annotations = {}, ownerReferences = [] } = metadata
  return { labels: own, annotations, ownerReferences }
}

function forgedMetadata(name: string) {
  return { name, namespace }
}

function forged(own: Record<string, string>): Sandbox {
  return {
    metadata: { namespace, labels: own },
    spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'evil' }] } } },
  }
}

function ownedBy({ metadata: { name = '', uid = '' } }: SandboxClaim) {
  return { apiVersion: group, kind: 'SandboxClaim', name, uid, controller: true, blockOwnerDeletion: true }
}

function anywhere<T extends { metadata: { name: string } }>(object: T) {
  return { ...object, metadata: { name: object.metadata.name } }
}
