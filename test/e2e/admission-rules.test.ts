import { join } from 'node:path'
import t from 'tap'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { sandboxClaimKind } from '../../src/api/kinds.ts'
import { annotations } from '../../src/api/vocabulary.ts'
import { rules } from '../../src/policy/rules.ts'
import { loadFixtures, type Fixture } from '../policy/fixture.ts'
import { configurationFile } from './configuration-file.ts'
import { stage, type StagedFixture } from './fixture-stage.ts'
import { verdicts, type Printed } from './fixture-verdicts.ts'
import { whileUnregistered } from './registration.ts'
import { startScene } from './scene.ts'

/** Fixtures that no request to a real API server can bring about, or whose change something else forestalls. */
const onlyUnits: Readonly<Record<string, string>> = {
  'claim/reserved-keys/deny/asked-in-the-name-of-another.yaml': 'mutation overwrites the stamp first; tested below',
  'claim/reserved-keys/deny/stamp-removed.yaml': 'mutation puts the stamp back first; tested below',
  'pod/forged-sandbox/deny/true-owner.yaml':
    'no selector picks Pods by their owner, so without a label nobody is asked',
  'pod/forged-sandbox/deny/adoptable-on-an-owned-pod.yaml': 'likewise',
  'pod/sandbox-spec/allow/by-the-controller.yaml': 'its role lets the product patch, and kubectl replaces here',
  'sandbox/pooled-spec/allow/by-the-controller.yaml': 'likewise',
  'pod/ephemeral-container/deny/privileged.yaml': 'servers before 1.23 refuse every security context there',
  'pod/ephemeral-container/allow/not-a-sandbox.yaml': 'likewise',
  'set/persistent-contents/deny/unknown.yaml': 'the schema refuses it first, and names the values that there are',
  'template/pod-invalid/deny/not-tried.yaml': 'a slow API server; the admission tests try an exhausted quota instead',
}

// A call of kubectl takes a third of a second on a quiet machine, and there are some sixty.
const patience = { timeout: 150_000 }
t.setTimeout(patience.timeout)

/** Faults that users of such systems have met, and the fixtures that bring them about. */
const cases: Readonly<Record<string, string>> = {
  'a Sandbox with a Service and a name of 64 characters': 'sandbox/name/deny/too-long-for-its-service.yaml',
  'two volume claim templates of one name': 'template/volume-names/deny/twice.yaml',
  'a variable beside envFrom': 'claim/env-from/deny/config-map.yaml',
  'LD_PRELOAD in a claim': 'claim/env-reserved/deny/ld-preload.yaml',
  'kernel parameters for Kata in a claim': 'claim/runtime-annotation/deny/kata-kernel-parameters.yaml',
  'a forged member of a pool': 'sandbox/forged-pool/deny/label-and-owner-of-the-pool.yaml',
  'a projected service account token': 'template/service-account-token/deny/projected.yaml',
  'a shutdownTime in the past': 'claim/expiry/deny/past.yaml',
}

const folder = t.testdir()
const configuration = await configurationFile(folder)
// Without controllers every object stays as its fixture has it, and nobody collects what has an owner that never was.
const { etcd, apiServer, kubectl: kubectlBinary, minorVersion, origin } = await findControlPlane(() => undefined)
const scene = await startScene(t, {
  binaries: { etcd, apiServer, minorVersion, origin, ...(kubectlBinary && { kubectl: kubectlBinary }) },
  flags: ['--gate', `--config=${configuration.path}`],
  nodeCount: 1,
  audit: false,
})
const { client, controlPlane, product, kubectl } = scene

const fixtures = loadFixtures().filter(({ path }) => !(path in onlyUnits))
const staged = await stageAll(fixtures)
await allowUsers(fixtures)
const recentlyMade = new Map<string, number>()

for (const group of Map.groupBy(staged, ({ header }) => JSON.stringify(header.config ?? {})).values()) {
  await t.test(`under the configuration ${JSON.stringify(group[0]?.header.config ?? {})}`, patience, async (t) => {
    await configuration.use(product, group[0]?.header.config ?? {})
    for (const fixture of group) await createRecently(fixture)
    const answers = await ask(group)
    for (const fixture of group) {
      await t.test(fixture.path, async (t) => {
        const { accepted, stderr } = answers.get(fixture.path) ?? { accepted: false, stderr: 'nothing was asked' }
        const isRefused = fixture.verdict === 'deny' && modeOf(fixture) === 'enforce'
        t.equal(accepted, !isRefused, stderr)
        const says = (text: string) => t.ok(stderr.includes(text), `${text} is in: ${stderr}`)
        if (fixture.verdict === 'allow') return t.notOk(stderr.includes(`(${fixture.rule})`), stderr)
        if (!isRefused) says('Warning: ')
        says(fixture.header.message ?? '')
        return says(`(${fixture.rule})`)
      })
    }
  })
}

t.test('every fixture that is left to the unit tests exists', async (t) => {
  const paths = new Set(loadFixtures().map(({ path }) => path))
  t.same(
    Object.keys(onlyUnits).filter((path) => !paths.has(path)),
    [],
  )
})

t.test('the faults that users have met are among what was refused', async (t) => {
  const tried = new Set(fixtures.map(({ path }) => path))
  for (const [what, path] of Object.entries(cases)) t.ok(tried.has(path), what)
})

t.test('every rule has been tried with something that it refuses and something that it does not', async (t) => {
  const tried = new Set(fixtures.map(({ rule, verdict }) => `${rule} ${verdict}`))
  const wanted = rules.flatMap(({ id }) => [`${id} allow`, `${id} deny`])
  t.same(
    wanted.filter((each) => !tried.has(each)),
    [],
  )
})

t.test('who asked is stamped by the gate, whatever the claim says, and stays', async (t) => {
  await configuration.use(product, {})
  const claim = (stamps: object) =>
    JSON.stringify({
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxClaim',
      metadata: { name: 'stamped', namespace: 'default', annotations: stamps },
      spec: { warmPoolRef: { name: 'none' } },
    })
  const stored = async () =>
    (await client.get(sandboxClaimKind, { namespace: 'default', name: 'stamped' })).metadata.annotations
  await kubectl(['create', '--as=alice', '-f', '-'], claim({ [annotations.requestedBy]: 'bob' }))
  t.equal((await stored())?.[annotations.requestedBy], 'alice')
  const first = await stored()
  await kubectl(['replace', '--as=velero', '-f', '-'], claim({}))
  t.match(await stored(), first)
})

async function stageAll(all: readonly Fixture[]): Promise<StagedFixture[]> {
  const names = all.map((_, i) => `fixture-${i}`)
  for (const name of names) await controlPlane.createNamespace(name)
  return await whileUnregistered(client, async () => {
    const now = Date.now()
    return await Promise.all(all.map((fixture, i) => stage(client, fixture, names[i] ?? '', now)))
  })
}

/** Authorization is not what is being tried. The product keeps its own role. */
async function allowUsers(all: readonly Fixture[]): Promise<void> {
  const users = new Set(all.map(({ subject }) => subject.username))
  users.delete(product.username)
  const flags = [...users].map((user) => `--user=${user}`)
  await kubectl(['create', 'clusterrolebinding', 'fixtures', '--clusterrole=cluster-admin', ...flags])
}

/** Claims that the user has made within the last minute, where a limit makes it matter. A namespace has its own limit. */
async function createRecently({ subject, header, context }: StagedFixture): Promise<void> {
  if (context.config.claims.maxCreatesPerMinute === undefined) return
  const made = recentlyMade.get(subject.username) ?? 0
  const wanted = header.facts?.claimsByUserLastMinute ?? 0
  const items = staged.slice(made, wanted).map(({ namespace }) => ({
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    metadata: { name: 'recent', namespace },
    spec: { warmPoolRef: { name: 'none' } },
  }))
  const list = { apiVersion: 'v1', kind: 'List', items }
  if (items.length > 0) await kubectl(['create', `--as=${subject.username}`, '-f', '-'], JSON.stringify(list))
  recentlyMade.set(subject.username, Math.max(made, wanted))
}

async function ask(group: readonly StagedFixture[]): Promise<Map<string, Printed>> {
  const session = { kubectl: controlPlane.kubectl, folder: join(folder, 'manifests') }
  const warning = group.filter(({ rule }) => modeOf({ rule }) === 'warn')
  const other = group.filter((fixture) => !warning.includes(fixture) && modeOf(fixture) === 'enforce')
  const softer = group.filter((fixture) => !warning.includes(fixture) && !other.includes(fixture))
  return new Map([
    ...(await verdicts(session, other, { alone: false })),
    ...(await verdicts(session, [...warning, ...softer], { alone: true })),
  ])
}

function modeOf({ rule, header }: Pick<Fixture, 'rule'> & Partial<Pick<Fixture, 'header'>>) {
  return header?.mode ?? rules.find(({ id }) => id === rule)?.mode
}
