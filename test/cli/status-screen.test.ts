import t from 'tap'
import type { Event } from '../../src/api/core.ts'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate, SandboxWarmPool } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { paintFor, plain } from '../../src/cli/paint.ts'
import { statusReport, type StatusObjects } from '../../src/cli/status-report.ts'
import { age, statusLines } from '../../src/cli/status-screen.ts'
import { tableLines } from '../../src/cli/table.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { poolHashOf } from '../../src/planning/pools.ts'
import { buildMember, recipeOf } from '../../src/planning/recipe.ts'

const now = Date.parse('2026-01-01T00:10:00Z')
const namespace = 'default'

const template = (image: string): SandboxTemplate => ({
  metadata: { name: 'python', namespace },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image }] } } },
})
const pool: SandboxWarmPool = {
  metadata: { name: 'python', namespace, uid: 'p' },
  spec: { replicas: 3, sandboxTemplateRef: { name: 'python' } },
  status: { replicas: 3, readyReplicas: 1 },
}
function member(name: string, image: string): Sandbox {
  const recipe = recipeOf(pool, template(image), { config: defaultConfig })
  if (recipe.kind !== 'recipe') throw new Error(recipe.message)
  return buildMember(recipe, name, '')
}
const set: SandboxSet = {
  metadata: { name: 'web', namespace },
  spec: { replicas: 4 },
  status: {
    replicas: 4,
    availableReplicas: 4,
    updatedReplicas: 1,
    conditions: [
      {
        type: 'Progressing',
        status: 'False',
        reason: 'ImagePullBackOff',
        message: 'no such\nimage',
        lastTransitionTime: '',
      },
    ],
  },
}
const claim = (name: string, created: string, ready?: string): SandboxClaim => ({
  metadata: {
    name,
    namespace,
    creationTimestamp: created,
    annotations: { 'agents.x-k8s.io/webhook-first-observed-at': '2026-01-01T00:00:00.500000000Z' },
  },
  spec: { warmPoolRef: { name: 'python' } },
  status: ready
    ? {
        sandbox: { name: 'bound' },
        conditions: [
          { type: 'Ready', status: 'True', reason: 'DependenciesReady', message: '', lastTransitionTime: ready },
        ],
      }
    : {},
})
const refusal: Event = {
  metadata: { namespace },
  involvedObject: { kind: 'SandboxClaim', name: 'bad' },
  type: 'Warning',
  reason: 'AdmissionRefused',
  message: '2 problems:\n- one\n- \u001B[31mtwo',
  count: 3,
  lastTimestamp: '2026-01-01T00:09:00Z',
}
const objects: StatusObjects = {
  warmPools: [pool],
  sets: [set],
  templates: [template('new')],
  sandboxes: [
    member('old', 'old'),
    member('new', 'new'),
    { metadata: { name: 'bound', namespace, labels: { [labels.launchType]: 'cold' } }, spec: member('x', 'new').spec },
  ],
  claims: [
    claim('earlier', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z'),
    claim('slow', '2026-01-01T00:00:01Z', '2026-01-01T00:00:04Z'),
    claim('latest', '2026-01-01T00:09:00Z'),
  ],
  refusals: [refusal],
}
const report = statusReport(objects, defaultConfig)
const plainPaint = paintFor({})

t.test('pools are counted by their status, stale stock by what would be made now', async (t) => {
  t.equal(objects.sandboxes[0]?.metadata.labels?.[labels.warmPool], poolHashOf(pool))
  t.match(report.pools, [
    { name: 'python', kind: 'SandboxWarmPool', desired: 3, ready: 1, creating: 2, stale: 1, trouble: undefined },
    {
      name: 'web',
      kind: 'SandboxSet',
      desired: 4,
      ready: 4,
      creating: 0,
      stale: 3,
      trouble: { reason: 'ImagePullBackOff' },
    },
  ])
})

t.test('without the configuration nobody can tell what is stale in a warm pool', async (t) => {
  const { pools } = statusReport(objects, undefined)
  t.same(
    pools.map(({ stale }) => stale),
    [undefined, 3],
  )
})

t.test('claims come the latest first, with how they were served', async (t) => {
  t.match(report.claims, [
    { name: 'latest', ready: false, since: '2026-01-01T00:09:00Z', sandbox: undefined, latencySeconds: undefined },
    { name: 'slow', ready: true, sandbox: 'bound', launchType: 'cold', latencySeconds: 3 },
    { name: 'earlier', ready: true, latencySeconds: 0 },
  ])
})

t.test('the tables are aligned, on one line for each object, and free of control characters', async (t) => {
  t.same(statusLines(report, { now, withNamespace: false, paint: plainPaint }), [
    'POOL    KIND             DESIRED  READY  CREATING  STALE  TROUBLE',
    'python  SandboxWarmPool  3        1      2         1',
    'web     SandboxSet       4        4      0         3      ImagePullBackOff: no such image',
    '',
    'CLAIM    POOL    STATUS   SANDBOX  LAUNCH  SINCE  LATENCY',
    'latest   python  Pending  -        -       60s    -',
    'slow     python  Ready    bound    cold    9m     3s',
    'earlier  python  Ready    bound    cold    10m    <1s',
    '',
    'REFUSED           TIMES  LAST  BECAUSE',
    'SandboxClaim bad  3      60s   2 problems: - one - two',
  ])
})

t.test('a low screen shows the latest claims and counts the others', async (t) => {
  const claims = Array.from({ length: 50 }, (_, i) => claim(`c${i}`, `2026-01-01T00:00:${String(i).padStart(2, '0')}Z`))
  const many = statusReport({ ...objects, claims }, defaultConfig)
  const lines = statusLines(many, { now, withNamespace: true, paint: plainPaint, height: 20 })
  t.ok(lines.length <= 20)
  t.match(lines[5], /c49/)
  t.match(lines.join('\n'), /… and \d+ earlier\n\nNAMESPACE {2}REFUSED/)
})

t.test('on a narrow terminal the widest columns give way, and colours do not count', async (t) => {
  const paint = paintFor({ isTTY: true }, {})
  const rows = [
    [{ text: 'short' }, { text: 'a'.repeat(40), paint: paint.red }, { text: 'b'.repeat(30) }],
    [{ text: 'x' }, { text: 'y' }, { text: 'z' }],
  ]
  const [first = '', second] = tableLines(rows, 40)
  t.equal(plain(first), `short  ${'a'.repeat(15)}…  ${'b'.repeat(14)}…`)
  t.equal(second, `x      y${' '.repeat(17)}z`)
  for (const width of [5, 40, 79]) {
    for (const line of tableLines(rows, width)) t.ok(plain(line).length <= Math.max(width, 5 + 8 + 8 + 4))
  }
})

t.test('an empty table says that there is nothing', async (t) => {
  t.same(tableLines([]), [])
  const nothing = statusReport(
    { warmPools: [], sets: [], templates: [], sandboxes: [], claims: [], refusals: [] },
    undefined,
  )
  t.same(statusLines(nothing, { now, withNamespace: true, paint: plainPaint }), [
    'Pools: none',
    '',
    'Claims: none',
    '',
    'Refused lately: none',
  ])
})

t.test('colours are for terminals, and not for those who do not want them', async (t) => {
  t.equal(paintFor({ isTTY: true }, {}).red('x'), '\u001B[31mx\u001B[0m')
  t.equal(paintFor({ isTTY: true }, { NO_COLOR: '1' }).red('x'), 'x')
  t.equal(paintFor({ isTTY: true }, { NO_COLOR: '' }).red('x'), '\u001B[31mx\u001B[0m')
  t.equal(paintFor({ isTTY: true }, { TERM: 'dumb' }).red('x'), 'x')
  t.equal(paintFor({}, {}).red('x'), 'x')
})

t.test('an age has one unit', async (t) => {
  t.same([-5, 0, 119_999, 120_000, 7_199_000, 7_200_000, 172_799_000, 172_800_000, NaN].map(age), [
    '0s',
    '0s',
    '119s',
    '2m',
    '119m',
    '2h',
    '47h',
    '2d',
    '-',
  ])
})
