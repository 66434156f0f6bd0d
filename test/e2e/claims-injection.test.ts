import t from 'tap'
import type { V1EnvVar } from '@kubernetes/client-node'
import { type Pod, persistentVolumeClaims } from '../../src/api/core.ts'
import { sandboxClaimKind, sandboxTemplateKind, sandboxWarmPoolKind } from '../../src/api/kinds.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { aPodTemplate, manifestOf, namespace, startClaimStage, type TemplateSpec } from './claim-stage.ts'

const volume = (name: string, storage = '1Gi') => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
})
const envFrom = [{ configMapRef: { name: 'settings', optional: true } }]
const steps: TemplateSpec['podTemplate'] = {
  spec: {
    initContainers: [{ name: 'prepare', image: 'box:1' }],
    containers: [
      {
        name: 'main',
        image: 'box:1',
        env: [
          { name: 'LANG', value: 'C' },
          { name: 'NODE', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } },
        ],
      },
      { name: 'sidecar', image: 'box:1' },
      { name: 'loaded', image: 'box:1', envFrom },
    ],
  },
}

function envOf({ spec }: Pod, container: string): V1EnvVar[] | undefined {
  const all = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
  return all.find(({ name }) => name === container)?.env
}

t.test('what a claim brings along', { timeout: 150_000 }, async (t) => {
  const stage = await startClaimStage(t, { audit: false })
  const {
    client,
    kubectl,
    find,
    setUp,
    claim,
    claimRefused,
    patch,
    untilReady,
    untilReason,
    untilGone,
    untilCollecting,
  } = stage
  await Promise.all([
    setUp('strict', 1, { podTemplate: steps }),
    setUp('allowed', 1, { podTemplate: steps, envVarsInjectionPolicy: 'Allowed' }),
    setUp('overrides', 1, { podTemplate: steps, envVarsInjectionPolicy: 'Overrides' }),
    setUp('volumes-strict', 0),
    setUp('volumes-allowed', 1, { volumeClaimTemplates: [volume('data')], volumeClaimTemplatesPolicy: 'Allowed' }),
    setUp('volumes-overrides', 0, {
      volumeClaimTemplates: [volume('data'), volume('cache')],
      volumeClaimTemplatesPolicy: 'Overrides',
    }),
  ])

  await t.test('env Allowed: variables are added to the containers they name, past a full pool', async (t) => {
    const env = [
      { name: 'FIRST', value: '1' },
      { name: 'SECOND', value: '2', containerName: 'sidecar' },
      { name: 'THIRD', value: '3', containerName: 'prepare' },
    ]
    await claim('allowed', 'adds', { env })
    const { sandbox, pod } = await untilReady('adds')
    t.equal(sandbox.metadata.name, 'adds')
    t.equal(sandbox.metadata.labels?.[labels.launchType], 'cold')
    t.match(envOf(pod, 'main'), [{ name: 'LANG', value: 'C' }, { name: 'NODE' }, { name: 'FIRST', value: '1' }])
    t.same(envOf(pod, 'sidecar'), [{ name: 'SECOND', value: '2' }])
    t.same(envOf(pod, 'prepare'), [{ name: 'THIRD', value: '3' }])
    t.equal(envOf(pod, 'loaded'), undefined)
    await stage.untilFull('allowed', 1)
  })

  await t.test('env Allowed: what the template sets, or may set, is not changed (case 19)', async (t) => {
    const refusal = (env: object) => claimRefused('allowed', 'refused', { env: [env as { name: string }] })
    t.match(await refusal({ name: 'LANG', value: 'tr' }), /env\[0\].*LANG.*Overrides.*\(claim\/env-override\)/)
    t.match(await refusal({ name: 'A', value: '1', containerName: 'loaded' }), /envFrom.*\(claim\/env-from\)/)
    t.match(await refusal({ name: 'A', value: '1', containerName: 'nobody' }), /nobody.*\(claim\/env-container\)/)
    t.match(await refusal({ name: 'LD_PRELOAD', value: '/x.so' }), /\(claim\/env-reserved\)/)
    t.equal(await find(sandboxClaimKind, 'refused'), undefined)
  })

  await t.test('env Overrides: a variable is replaced whole, in its place, and envFrom is no obstacle', async (t) => {
    const env = [
      { name: 'NODE', value: 'mine' },
      { name: 'A', value: '1', containerName: 'loaded' },
    ]
    await claim('overrides', 'replaces', { env })
    const { pod } = await untilReady('replaces')
    t.same(envOf(pod, 'main'), [
      { name: 'LANG', value: 'C' },
      { name: 'NODE', value: 'mine' },
    ])
    t.same(envOf(pod, 'loaded'), [{ name: 'A', value: '1' }])
    t.match(pod.spec?.containers.find(({ name }) => name === 'loaded')?.envFrom, envFrom)
  })

  await t.test('env Disallowed, as it is by default: refused with rule and advice', async (t) => {
    const refusal = await claimRefused('strict', 'refused', { env: [{ name: 'A', value: '1' }] })
    t.match(refusal, /envVarsInjectionPolicy: Allowed.*\(claim\/env-policy\)/)
  })

  await t.test(
    'a claim that was there before its template is judged when that comes, and again when it changes',
    async (t) => {
      await claim('late', 'early', { env: [{ name: 'A', value: '1' }] })
      const metadata = { name: 'late', namespace }
      const pool = { metadata, spec: { replicas: 0, sandboxTemplateRef: { name: 'late' } } }
      await client.create(sandboxWarmPoolKind, pool)
      await client.create(sandboxTemplateKind, { metadata, spec: { podTemplate: aPodTemplate } })
      t.match((await untilReason('early', 'EnvVarsInjectionRejected')).message, /envVarsInjectionPolicy/)
      t.equal(await find(sandboxClaimKind, 'early').then((it) => it?.status?.sandbox), undefined)
      await patch(sandboxTemplateKind, 'late', { spec: { envVarsInjectionPolicy: 'Allowed' } })
      t.same(envOf((await untilReady('early')).pod, 'main'), [{ name: 'A', value: '1' }])
    },
  )

  const volumesOf = async (sandbox: string) => {
    const { items } = await client.list(persistentVolumeClaims, { namespace })
    const own = items.filter(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === sandbox))
    const rows = own.map(({ metadata, spec, status }) => [
      metadata.name,
      spec?.resources?.requests?.['storage'],
      status?.phase,
    ])
    return rows.toSorted(([a = ''], [b = '']) => a.localeCompare(b))
  }
  const untilBound = (sandbox: string, count: number) =>
    stage.until('the volumes', async () => {
      const rows = await volumesOf(sandbox)
      return rows.length === count && rows.every(([, , phase]) => phase === 'Bound')
    })

  await t.test('volumes Allowed: one is added beside the template’s, and both are mounted', async (t) => {
    await claim('volumes-allowed', 'disk', { volumeClaimTemplates: [volume('more', '2Gi')] })
    const { sandbox, pod } = await untilReady('disk')
    t.equal(sandbox.metadata.labels?.[labels.launchType], 'cold')
    await untilBound('disk', 2)
    t.same(await volumesOf('disk'), [
      ['data-disk', '1Gi', 'Bound'],
      ['more-disk', '2Gi', 'Bound'],
    ])
    t.match(pod.spec?.volumes, [
      { name: 'data', persistentVolumeClaim: { claimName: 'data-disk' } },
      { name: 'more', persistentVolumeClaim: { claimName: 'more-disk' } },
    ])
    const again = await claimRefused('volumes-allowed', 'refused', { volumeClaimTemplates: [volume('data')] })
    t.match(again, /volumeClaimTemplates\[0\].*Overrides.*\(claim\/volume-override\)/)
  })

  await t.test('volumes Overrides: one is replaced in its place, new ones follow', async (t) => {
    const volumeClaimTemplates = [volume('more'), volume('data', '5Gi')]
    await claim('volumes-overrides', 'bigger', { volumeClaimTemplates })
    const { sandbox } = await untilReady('bigger')
    t.same(
      sandbox.spec.volumeClaimTemplates?.map(({ metadata }) => metadata.name),
      ['data', 'cache', 'more'],
    )
    await untilBound('bigger', 3)
    t.same(await volumesOf('bigger'), [
      ['cache-bigger', '1Gi', 'Bound'],
      ['data-bigger', '5Gi', 'Bound'],
      ['more-bigger', '1Gi', 'Bound'],
    ])
  })

  await t.test('volumes Disallowed, as it is by default: refused with rule and advice', async (t) => {
    const refusal = await claimRefused('volumes-strict', 'refused', { volumeClaimTemplates: [volume('data')] })
    t.match(refusal, /volumeClaimTemplatesPolicy: Allowed.*\(claim\/volume-policy\)/)
  })

  await t.test('case 17: a volume that is named twice is refused, in a claim and in a template', async (t) => {
    const twice = { volumeClaimTemplates: [volume('d'), volume('d')] }
    t.match(
      await claimRefused('volumes-allowed', 'refused', twice),
      /volumeClaimTemplates\[1\].*the name d is used twice.*\(claim\/volume-names\)/,
    )
    const template = { metadata: { name: 'twice', namespace }, spec: { podTemplate: aPodTemplate, ...twice } }
    const refusal = await stage.kubectlRefused(['create', '-f', '-'], manifestOf(sandboxTemplateKind, template))
    t.match(refusal, /volumeClaimTemplates\[1\].*the name d is used twice/)
  })

  await untilCollecting()
  await t.test('the volumes of a sandbox go with its claim', async () => {
    await kubectl(['delete', 'sandboxclaim', 'disk'])
    await untilGone(persistentVolumeClaims, 'data-disk')
    await untilGone(persistentVolumeClaims, 'more-disk')
  })

  const note = { labels: { 'team.sandbox.users.io/name': 'blue' }, annotations: { 'example.com/ticket': 'T-1' } }
  for (const [how, pool] of [
    ['warm', 'strict'],
    ['cold', 'volumes-strict'],
  ] as const) {
    await t.test(`additionalPodMetadata reaches the Pod, ${how}, and follows what is edited later`, async (t) => {
      await claim(pool, how, { additionalPodMetadata: note })
      const { claim: bound, sandbox } = await untilReady(how)
      t.equal(sandbox.metadata.labels?.[labels.launchType], how)
      const podName = sandbox.metadata.annotations?.[annotations.podName] ?? ''
      const podMetadata = async () => (await untilReady(how)).pod.metadata
      await stage.until(
        'the marks of the claim',
        async () => (await podMetadata()).labels?.[labels.claimUid] !== undefined,
      )
      const metadata = await podMetadata()
      t.equal(metadata.name, podName)
      t.match(metadata, { ...note, labels: { [labels.claimUid]: bound.metadata.uid } })
      t.notOk(metadata.labels?.[labels.warmPool], 'no mark of the pool is left')
      t.notOk(metadata.annotations?.[annotations.safeToEvict], 'nor its leave to evict')

      const edit = { labels: { 'team.sandbox.users.io/name': 'red' }, annotations: { 'example.com/ticket': null } }
      await patch(sandboxClaimKind, how, { spec: { additionalPodMetadata: edit } })
      await stage.until('the edit', async () => {
        const { labels: now, annotations: notes } = await podMetadata()
        return now?.['team.sandbox.users.io/name'] === 'red' && notes?.['example.com/ticket'] === undefined
      })
    })
  }

  await t.test('metadata that is not for claims to set is refused', async (t) => {
    const refusal = (additionalPodMetadata: object) => claimRefused('strict', 'refused', { additionalPodMetadata })
    t.match(await refusal({ labels: { team: 'blue' } }), /sandbox\.users\.io.*\(claim\/label-domain\)/)
    const runtime = { 'io.katacontainers.config.hypervisor.kernel_params': 'x' }
    t.match(await refusal({ annotations: runtime }), /\(claim\/runtime-annotation\)/)
  })
})
