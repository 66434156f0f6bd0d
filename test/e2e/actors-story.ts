import type { Test } from 'tap'
import { waitUntil } from '../../devcluster/wait.ts'
import { pods, type Pod } from '../../src/api/core.ts'
import { sandboxClaimKind, sandboxKind, type Sandbox } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { controllerOf, type KubeObject } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { configurationFile } from './configuration-file.ts'
import { startScene, type Scene } from './scene.ts'

const namespace = 'team'
const doomedNamespace = 'doomed'
const maxReplicas = 4

const template = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: { name: python }
spec: { podTemplate: { spec: { containers: [{ name: main, image: "python:3.13" }] } } }
`
const pool = (name: string, replicas = 2) => `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: { name: ${name} }
spec: { replicas: ${replicas}, sandboxTemplateRef: { name: python } }
`
const set = (name: string, replicas = 1) => `
apiVersion: agents.kruise.io/v1alpha1
kind: SandboxSet
metadata: { name: ${name} }
spec: { replicas: ${replicas}, template: { spec: { containers: [{ name: main, image: "python:3.13" }] } } }
`
const claim = (name: string, from: string) => `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: { name: ${name} }
spec: { warmPoolRef: { name: ${from} } }
`
const box = (name: string) => `
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: { name: ${name} }
spec: { podTemplate: { spec: { containers: [{ name: main, image: "python:3.13" }] } } }
`
const autoscaler = (kind: string, apiVersion: string, name: string, minReplicas: number) => `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: { name: ${name} }
spec: { minReplicas: ${minReplicas}, maxReplicas: 9, scaleTargetRef: { apiVersion: ${apiVersion}, kind: ${kind}, name: ${name} } }
`
/** Pods that claim to be a sandbox's, by way of a workload controller. */
const impostor = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: { name: impostor }
spec:
  replicas: 1
  selector: { matchLabels: { app: impostor } }
  template:
    metadata: { labels: { app: impostor, ${labels.sandboxNameHash}: "59733166" } }
    spec: { containers: [{ name: main, image: evil }] }
`

/**
 * Everyone of the control plane who writes what the integrity rules protect gets through, and a tenant who does the same
 * does not. To be told with an account for each controller, and with one for them all.
 */
export async function tellOfActors(t: Test, { serviceAccountCredentials }: { serviceAccountCredentials: boolean }) {
  const configuration = await configurationFile(t.testdir())
  const flags = [`--config=${configuration.path}`]
  const scene = await startScene(t, { serviceAccountCredentials, flags, audit: false })
  const { client, controlPlane, product, kubectl, until } = scene
  const story = storyIn(scene)
  const { members, isFull, isBound } = story

  await configuration.use(product, { pools: { maxReplicas } })
  for (const name of [namespace, doomedNamespace]) await controlPlane.createNamespace(name)
  await kubectl(['create', 'rolebinding', 'alice', '--clusterrole=edit', '--user=alice', `-n=${namespace}`])
  const inNamespace = [`-n=${namespace}`]
  const apply = (...objects: string[]) => kubectl(['apply', ...inNamespace, '-f', '-'], objects.join('---'))
  const asAlice = (args: string[], input?: string) => scene.kubectl([...args, ...inNamespace, '--as=alice'], input)
  const refused = (args: string[], input?: string) =>
    scene.kubectlRefused([...args, ...inNamespace, '--as=alice'], input)

  const pools = ['kept', 'background', 'orphaned', 'foreground']
  await apply(template, ...pools.map((name) => pool(name)), set('coder'), box('alone'), box('left'))
  // The autoscaler takes its time: it is met again at the end.
  await apply(pool('scaled', 1), set('capped', 1))
  await apply(
    autoscaler('SandboxWarmPool', 'extensions.agents.x-k8s.io/v1beta1', 'scaled', 3),
    autoscaler('SandboxSet', 'agents.kruise.io/v1alpha1', 'capped', maxReplicas + 1),
    impostor,
  )
  for (const name of pools) await until(`pool ${name}`, () => isFull(name, 2))

  await t.test('a tenant may not take a pool’s sandbox or its Pod out of what holds it', async (t) => {
    const [member] = await members('kept')
    const name = member?.metadata.name ?? ''
    const owners = (of: KubeObject | undefined, change: object) =>
      JSON.stringify({
        metadata: { ownerReferences: of?.metadata.ownerReferences?.map((own) => ({ ...own, ...change })) },
      })
    const none = '{"metadata":{"ownerReferences":null}}'
    const patch = (kind: string, what: string) => ['patch', kind, name, '--type=merge', '-p', what]
    const [pod] = await story.podsOf(name)

    t.match(await refused(patch('sandbox', none)), /was removed.*\(sandbox\/forged-pool\)/)
    t.match(await refused(patch('sandbox', owners(member, { blockOwnerDeletion: false }))), /\(sandbox\/forged-pool\)/)
    t.match(await refused(['label', 'sandbox', name, `${labels.templateRefHash}-`]), /\(sandbox\/reserved-keys\)/)
    t.match(
      await refused(['label', 'sandbox', name, `${labels.warmPool}=x`, '--overwrite']),
      /\(sandbox\/forged-pool\)/,
    )
    t.match(await refused(['label', 'sandbox', 'alone', `${labels.warmPool}=x`]), /\(sandbox\/forged-pool\)/)
    t.match(await refused(patch('pod', none)), /was removed.*\(pod\/forged-sandbox\)/)
    t.match(await refused(patch('pod', owners(pod, { controller: false }))), /\(pod\/forged-sandbox\)/)
    t.match(await refused(['label', 'pod', name, `${labels.sandboxNameHash}-`]), /\(pod\/forged-sandbox\)/)
    t.match(
      await refused(['run', 'forged', '--image=evil', `-l=${labels.templateRefHash}=x`]),
      /\(pod\/forged-sandbox\)/,
    )
    t.match(await refused(['scale', 'swp', 'kept', '--replicas=5']), /\(pool\/replicas-cap\)/)
    t.match(await refused(['scale', 'sbs', 'coder', '--replicas=5']), /\(pool\/replicas-cap\)/)
  })

  await t.test('nor may an administrator', async (t) => {
    const name = (await members('kept'))[0]?.metadata.name ?? ''
    const refusal = await scene.kubectlRefused(['label', 'sandbox', name, `${labels.templateRefHash}-`, ...inNamespace])
    t.match(refusal, /\(sandbox\/reserved-keys\)/)
  })

  await t.test('a tenant may write back what is there, and label it', async (t) => {
    const name = (await members('kept'))[0]?.metadata.name ?? ''
    const stored = await asAlice(['get', 'sandbox', name, '-o', 'json'])
    t.match(await asAlice(['replace', '-f', '-'], stored), /replaced/)
    t.match(await asAlice(['label', 'sandbox', name, 'team=red']), /labeled/)
  })

  await t.test('a workload controller makes no Pods with a sandbox’s labels', async (t) => {
    const failure = () =>
      kubectl(['get', 'rs', 'impostor', ...inNamespace, '-o', 'jsonpath={.status.conditions[0].message}'])
    await until('the refusal', async () => (await failure()).includes('(pod/forged-sandbox)'))
    t.equal(await kubectl(['get', 'pods', ...inNamespace, '-l=app=impostor', '-o', 'name']), '')
    await kubectl(['delete', 'rs', 'impostor', ...inNamespace])
  })

  await t.test('the garbage collector takes a deleted pool’s sandboxes, and a deleted claim’s', async (t) => {
    await apply(claim('short', 'background'))
    await until('the claim', () => isBound('short'))
    const bound = await story.sandboxOf('short')
    await kubectl(['delete', 'swp', 'background', ...inNamespace])
    await until('the end of the members', async () => (await members('background')).length === 0)
    t.ok(await story.find(bound), 'the claimed one stays')
    await kubectl(['delete', 'sandboxclaim', 'short', ...inNamespace])
    await until('the end of the claimed one', async () => (await story.find(bound)) === undefined)
    await until('the end of its Pod', async () => (await story.podsOf(bound)).length === 0)
  })

  await t.test('a pool and a sandbox that are deleted without their own leave them behind', async (t) => {
    const names = (await members('orphaned')).map(({ metadata }) => metadata.name ?? '')
    await kubectl(['delete', 'swp', 'orphaned', '--cascade=orphan', ...inNamespace])
    const owners = async () =>
      (await Promise.all(names.map(story.find))).map((sandbox) => sandbox && (controllerOf(sandbox)?.name ?? 'nobody'))
    await until('the release of the members', async () => (await owners()).every((owner) => owner === 'nobody'))
    t.same(await owners(), ['nobody', 'nobody'])

    await until('the sandbox', async () => (await story.podsOf('left')).length === 1)
    await kubectl(['delete', 'sandbox', 'left', '--cascade=orphan', ...inNamespace])
    await until('the release of the Pod', async () => {
      const [pod] = await story.podsOf('left')
      return pod !== undefined && controllerOf(pod) === undefined
    })
  })

  await t.test(
    'a pool that is deleted in the foreground goes after its sandboxes, the claimed one excepted',
    async (t) => {
      await apply(claim('held', 'foreground'))
      await until('the claim', () => isBound('held'))
      const bound = await story.sandboxOf('held')
      await kubectl(['delete', 'swp', 'foreground', '--cascade=foreground', '--timeout=30s', ...inNamespace])
      t.same(await members('foreground'), [])
      t.ok(await story.find(bound))
      t.ok(await isBound('held'))
      await kubectl(['delete', 'sandboxclaim', 'held', '--cascade=foreground', '--timeout=30s', ...inNamespace])
      t.notOk(await story.find(bound))
    },
  )

  await t.test('a namespace goes with everything in it', { timeout: 90_000 }, async (t) => {
    const everything = [template, pool('python'), set('coder'), claim('task', 'python'), box('alone')]
    await kubectl(['apply', `-n=${doomedNamespace}`, '-f', '-'], everything.join('---'))
    await until('the claim', () => isBound('task', doomedNamespace))
    await kubectl(['delete', 'namespace', doomedNamespace, '--timeout=60s'])
    t.same((await client.list(sandboxKind, { namespace: doomedNamespace })).items, [])
  })

  await t.test('an autoscaler scales a pool, as far as the cap lets it', { timeout: 90_000 }, async (t) => {
    // It looks every fifteen seconds, and learns of new kinds every thirty.
    const patience = { withinMs: 80_000 }
    await waitUntil('the scaled pool', () => isFull('scaled', 3), patience)
    const condition = () => kubectl(['get', 'hpa', 'capped', ...inNamespace, '-o', 'jsonpath={.metadata.annotations}'])
    await waitUntil('the refusal', async () => (await condition()).includes('(pool/replicas-cap)'), patience)
    t.ok(await isFull('capped', 1, 'SandboxSet'))
  })
}

/** What the story looks at, in its own namespace unless another is named. */
function storyIn({ client }: Scene) {
  const list = async () => (await client.list(sandboxKind, { namespace })).items
  const isReady = ({ status }: Sandbox) => findCondition(status?.conditions, 'Ready')?.status === 'True'
  const members = async (name: string, kind: 'SandboxWarmPool' | 'SandboxSet' = 'SandboxWarmPool') => {
    const label = kind === 'SandboxSet' ? labels.setPool : labels.warmPool
    const found = (await list()).filter(({ metadata }) => metadata.labels?.[label] !== undefined)
    return found.filter((sandbox) => controllerOf(sandbox)?.kind === kind && controllerOf(sandbox)?.name === name)
  }
  const getClaim = (name: string, where = namespace) => client.get(sandboxClaimKind, { namespace: where, name })
  return {
    members,
    async isFull(name: string, replicas: number, kind?: 'SandboxWarmPool' | 'SandboxSet') {
      const found = await members(name, kind)
      return found.length === replicas && found.every(isReady)
    },
    async isBound(name: string, where?: string) {
      return findCondition((await getClaim(name, where)).status?.conditions, 'Ready')?.status === 'True'
    },
    async sandboxOf(claimName: string) {
      return (await getClaim(claimName)).status?.sandbox?.name ?? ''
    },
    async find(name: string): Promise<Sandbox | undefined> {
      return (await list()).find(({ metadata }) => metadata.name === name)
    },
    async podsOf(name: string): Promise<Pod[]> {
      return (await client.list(pods, { namespace, fieldSelector: `metadata.name=${name}` })).items
    },
  }
}
