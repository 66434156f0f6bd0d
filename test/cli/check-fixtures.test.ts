import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseManifests, type Manifest } from '../../src/cli/check-manifests.ts'
import { judge } from '../../src/cli/check-verdicts.ts'
import { parseConfig } from '../../src/config/load.ts'
import { KubeError } from '../../src/kube/errors.ts'
import { rules } from '../../src/policy/rules.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { loadFixtures, type Fixture } from '../policy/fixture.ts'

/** `kubectl apply` creates and updates objects, for a user without groups, and facts come from manifests and a cluster. */
const fixtures = loadFixtures().filter(
  ({ header, subject }) =>
    subject.operation !== 'DELETE' && !subject.subresource && header.facts === undefined && header.groups === undefined,
)

/** What a rule refuses where it is asked, and what becomes of it on its way there. */
const otherwise: Readonly<Record<string, readonly string[] | 'not asked'>> = {
  // The stamp is put right before any rule sees it.
  'claim/reserved-keys/deny/asked-in-the-name-of-another.yaml': [],
  'claim/reserved-keys/deny/stamp-removed.yaml': [],
  // The API server asks about Pods that bear a sandbox's labels.
  'pod/forged-sandbox/allow/adoptable-on-an-unowned-pod.yaml': 'not asked',
  'pod/forged-sandbox/deny/adoptable-on-an-owned-pod.yaml': 'not asked',
  'pod/forged-sandbox/deny/true-owner.yaml': 'not asked',
  'pod/sandbox-spec/allow/not-a-sandbox.yaml': 'not asked',
  // The schema is checked first.
  'set/persistent-contents/deny/unknown.yaml': ['schema'],
}

async function verdictOn({ path, header, subject }: Fixture) {
  const { manifests, problems } = parseManifests(readFileSync(join('test/fixtures', path), 'utf8'), path)
  if (problems.length > 0) throw new Error(problems.join())
  const isUpdate = subject.operation === 'UPDATE'
  const { verdicts, skipped } = await judge(isUpdate ? manifests.slice(-1) : manifests, {
    config: parseConfig(JSON.stringify(header.config ?? {}), path),
    username: subject.username,
    namespace: 'default',
    clock: new ManualClock(Date.parse(header.now ?? '2026-01-01T00:00:00Z')),
    // What is missing there is missing, and not unknown.
    cluster: { client: emptyCluster, objects: isUpdate ? manifests.slice(0, -1).map(asStored) : [] },
  })
  if (skipped.includes(manifests.at(-1)!)) return 'not asked'
  return verdicts.find(({ manifest }) => manifest === manifests.at(-1))?.findings ?? []
}

/** As `kubectl apply` stores it: with a note of what was applied, by which the next one knows what to remove. */
function asStored({ object }: Manifest) {
  const lastApplied = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(object) }
  const metadata = { namespace: 'default', ...object.metadata }
  return {
    ...object,
    kind: object.kind ?? '',
    metadata: { ...metadata, annotations: { ...metadata.annotations, ...lastApplied } },
  }
}

const emptyCluster = {
  get: async (): Promise<never> => {
    throw new KubeError('NotFound', 'it holds nothing', { status: 404 })
  },
  create: async <T>(_resource: unknown, object: T) => object,
  serverClockOffsetMs: () => 0,
}

t.test('most rules have fixtures that can be checked, creations and updates', async (t) => {
  t.ok(new Set(fixtures.map(({ rule }) => rule)).size >= 38)
  t.ok(fixtures.filter(({ subject }) => subject.operation === 'UPDATE').length >= 20)
})

for (const fixture of fixtures) {
  t.test(fixture.path, async (t) => {
    const { path, rule, verdict, header } = fixture
    const found = await verdictOn(fixture)
    const expected = otherwise[path]
    if (found === 'not asked') {
      t.equal(found, expected)
      return
    }
    const refusedBy = [...new Set(found.filter(({ mode }) => mode === 'enforce').map((each) => each.rule))].toSorted()
    if (expected || verdict === 'allow') {
      t.same(refusedBy, expected ?? [])
      return
    }
    const mode = header.mode ?? rules.find(({ id }) => id === rule)?.mode
    const own = found.find((each) => each.rule === rule && each.message.includes(header.message ?? ''))
    t.equal(own?.mode, mode, `${rule} has found it`)
    t.same(refusedBy, [...(mode === 'enforce' ? [rule] : []), ...(header.also ?? [])].toSorted())
  })
}
