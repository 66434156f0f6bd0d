import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import { runAtOnce } from '../../devcluster/behaviour.ts'
import { pods } from '../../src/api/core.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxWarmPoolKind,
  type SandboxSet,
  type SandboxWarmPool,
} from '../../src/api/kinds.ts'
import type { Resource } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { follow, imageOf, statusesOf, stockOf } from './pool-watch.ts'
import { startScene } from './scene.ts'

const namespace = 'default'

// The manifests and commands of the users' guide to warm pools, in its order.
const demo = `
apiVersion: agents.kruise.io/v1alpha1
kind: SandboxSet
metadata:
  name: demo
  namespace: default
spec:
  replicas: 10
  persistentContents:
    - ip
  template:
    metadata:
      annotations:
        foo: bar
    spec:
      containers:
        - name: nginx
          image: nginx:alpine
`
const mySandboxPool = (image: string) => `
apiVersion: agents.kruise.io/v1alpha1
kind: SandboxSet
metadata:
  name: my-sandbox-pool
  namespace: default
spec:
  replicas: 10
  updateStrategy:
    maxUnavailable: "20%"
  template:
    spec:
      containers:
        - name: sandbox
          image: ${image}
          resources:
            requests:
              cpu: "1"
              memory: "512Mi"
            limits:
              cpu: "2"
              memory: "1Gi"
`
const others = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: { name: python }
spec:
  podTemplate:
    spec: { containers: [{ name: main, image: "python:3.13" }] }
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: { name: python }
spec: { replicas: 1, sandboxTemplateRef: { name: python } }
---
apiVersion: agents.kruise.io/v1alpha1
kind: SandboxSet
metadata: { name: elastic }
spec: { replicas: 1, templateRef: { name: python } }
`
/** Metrics are nowhere to be had here; a pool below the minimum is raised to it without any. Looked at each 15 s. */
const autoscaler = (kind: string, apiVersion: string, name: string, minReplicas: number) => `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: { name: ${name} }
spec:
  scaleTargetRef: { apiVersion: ${apiVersion}, kind: ${kind}, name: ${name} }
  minReplicas: ${minReplicas}
  maxReplicas: 20
  targetCPUUtilizationPercentage: 50
`

t.test('the users’ guide to warm pools, command by command', { timeout: 120_000 }, async (t) => {
  // As real Pods do, these take longer to start than a status takes to be written.
  const scene = await startScene(t, { behaviour: { ...runAtOnce, startAfterMs: 500 } })
  const { client, controlPlane, kubectl, until } = scene
  const setOf = (name: string) => client.get(sandboxSetKind, { namespace, name })
  const untilFull = (name: string, replicas: number, image: string) =>
    until(`${name} to be full`, async () => {
      const { metadata, spec, status } = await setOf(name)
      const isWritten =
        status?.observedGeneration === metadata.generation &&
        spec.replicas === replicas &&
        status?.replicas === replicas &&
        status.updatedAvailableReplicas === replicas
      if (!isWritten) return false
      const stock = stockOf((await client.list(sandboxKind, { namespace })).items, metadata.uid)
      return stock.length === replicas && stock.every((sandbox) => imageOf(sandbox) === image)
    })

  await t.test('a set fills, and kubectl get sbs shows it', async (t) => {
    await kubectl(['apply', '-f', '-'], demo)
    await untilFull('demo', 10, 'nginx:alpine')
    t.match(
      await kubectl(['get', 'sbs', '-n', 'default']),
      /^NAME +REPLICAS +AVAILABLE +UPDATEREVISION +AGE\ndemo +10 +10 +[0-9a-f]{10} +\d+s\n$/,
    )
    const { items } = await client.list(pods, { namespace })
    t.equal(items.filter(({ metadata }) => metadata.annotations?.['foo'] === 'bar').length, 10)
  })

  // Autoscalers take their time: theirs is looked at in the end.
  await kubectl(['apply', '-f', '-'], others)
  await kubectl(['apply', '-f', '-'], autoscaler('SandboxSet', 'agents.kruise.io/v1alpha1', 'elastic', 5))
  await kubectl(['apply', '-f', '-'], autoscaler('SandboxWarmPool', 'extensions.agents.x-k8s.io/v1beta1', 'python', 4))

  await t.test('kubectl scale takes it to 20, 5 and 3', async () => {
    await kubectl(['scale', 'sbs', 'demo', '--replicas=20', '-n', 'default'])
    await untilFull('demo', 20, 'nginx:alpine')
    await kubectl(['scale', 'sbs', 'demo', '--replicas=5', '-n', 'default'])
    await untilFull('demo', 5, 'nginx:alpine')
    await kubectl(['scale', 'sbs', 'demo', '--replicas=3', '-n', 'default'])
    await untilFull('demo', 3, 'nginx:alpine')
  })

  await t.test('a claim takes one, and the set goes through the four stages', async (t) => {
    const sets = await follow(t, client, sandboxSetKind, namespace)
    await client.create(sandboxClaimKind, {
      metadata: { name: 'agent', namespace },
      spec: { warmPoolRef: { kind: 'SandboxSet', name: 'demo' } },
    })
    await until('the claim', async () => {
      const { status } = await client.get(sandboxClaimKind, { namespace, name: 'agent' })
      return findCondition(status?.conditions, 'Ready')?.status === 'True'
    })
    const stages = () => stagesOf(statusesOf(sets.changes, 'demo'))
    await until('the last stage', async () => stages().length >= 4)
    t.same(stages(), ['3/3', '2/2', '3/2', '3/3'])
  })

  await t.test('kubectl patch updates the image, and progress shows in the wide columns', async (t) => {
    await kubectl(['apply', '-f', '-'], mySandboxPool('my-registry/sandbox-image:v1'))
    await untilFull('my-sandbox-pool', 10, 'my-registry/sandbox-image:v1')
    const before = (await setOf('my-sandbox-pool')).status?.updateRevision
    const patch =
      '{"spec":{"template":{"spec":{"containers":[{"name":"sandbox","image":"my-registry/sandbox-image:v2"}]}}}}'
    await kubectl(['patch', 'sbs', 'my-sandbox-pool', '--type', 'merge', '-p', patch])
    await untilFull('my-sandbox-pool', 10, 'my-registry/sandbox-image:v2')
    const { status } = await setOf('my-sandbox-pool')
    t.not(status?.updateRevision, before)
    t.match(
      await kubectl(['get', 'sandboxset', 'my-sandbox-pool', '-o', 'wide']),
      new RegExp(
        '^NAME +REPLICAS +AVAILABLE +UPDATEDREPLICAS +UPDATEDAVAILABLEREPLICAS +UPDATEREVISION +AGE\\n' +
          `my-sandbox-pool +10 +10 +10 +10 +${status?.updateRevision} +\\d+s\\n$`,
      ),
    )
  })

  await t.test('kubectl edit does the same', async (t) => {
    // The editor of someone who changes one line and saves.
    const editor = join(controlPlane.directory, 'editor.sh')
    await writeFile(editor, '#!/bin/sh\nexec sed -i s,sandbox-image:v2,sandbox-image:v3, "$1"\n', { mode: 0o700 })
    process.env['KUBE_EDITOR'] = editor
    t.teardown(() => delete process.env['KUBE_EDITOR'])
    await kubectl(['edit', 'sbs', 'my-sandbox-pool', '-n', 'default'])
    await untilFull('my-sandbox-pool', 10, 'my-registry/sandbox-image:v3')
  })

  await t.test('each sandbox tells its phase and revision, claimed or not', async (t) => {
    const columns = 'NAME:.metadata.name,PHASE:.status.phase,REVISION:.status.updateRevision'
    const query = (name: string) =>
      kubectl([
        'get',
        'sandboxes',
        '-l',
        `agents.kruise.io/sandbox-template=${name}`,
        '-o',
        `custom-columns=${columns}`,
      ])
    const rows = async (name: string) => (await query(name)).trimEnd().split('\n')
    const { status } = await setOf('my-sandbox-pool')
    const [header, ...lines] = await rows('my-sandbox-pool')
    t.match(header, /^NAME +PHASE +REVISION$/)
    t.equal(lines.length, 10)
    for (const line of lines) t.match(line, new RegExp(`^my-sandbox-pool-\\w{10} +Running +${status?.updateRevision}$`))
    t.equal((await rows('demo')).length, 1 + 3 + 1, 'three in stock, one with its claim')
  })

  await t.test(
    'autoscalers have moved pools of both kinds through their scale subresource',
    { timeout: 60_000 },
    async (t) => {
      const isAt = async (kind: Resource<SandboxSet | SandboxWarmPool>, name: string, replicas: number) => {
        const { spec, status } = await client.get(kind, { namespace, name })
        return spec.replicas === replicas && status?.replicas === replicas
      }
      await until('the set', () => isAt(sandboxSetKind, 'elastic', 5))
      await until('the warm pool', () => isAt(sandboxWarmPoolKind, 'python', 4))
      t.match(await kubectl(['get', 'hpa', 'elastic']), /SandboxSet\/elastic .* 5 +20 /)
      await kubectl(['delete', 'hpa', 'elastic', 'python'])
    },
  )

  await t.test('kubectl scale swp moves a warm pool', async (t) => {
    await kubectl(['scale', 'swp', 'python', '--replicas=2'])
    await until('the warm pool', async () => {
      const { status } = await client.get(sandboxWarmPoolKind, { namespace, name: 'python' })
      return status?.replicas === 2 && status.readyReplicas === 2
    })
    const scale = JSON.parse(
      await kubectl([
        'get',
        '--raw',
        '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxwarmpools/python/scale',
      ]),
    ) as { spec: object; status: { replicas: number; selector: string } }
    t.match(scale, { spec: { replicas: 2 }, status: { replicas: 2 } })
    const counted = await client.list(sandboxKind, { namespace, labelSelector: scale.status.selector })
    t.equal(counted.items.length, 2, 'its selector selects the stock')
    const countedPods = await client.list(pods, { namespace, labelSelector: scale.status.selector })
    t.equal(countedPods.items.length, 2, 'and its Pods, which is what an autoscaler measures')
  })
})

/** `replicas/availableReplicas` of each status that differs from the one before. */
function stagesOf(statuses: readonly NonNullable<SandboxSet['status']>[]): string[] {
  const stages = statuses.map(({ replicas, availableReplicas }) => `${replicas}/${availableReplicas}`)
  return stages.filter((stage, i) => stage !== stages[i - 1])
}
