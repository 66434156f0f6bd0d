import t from 'tap'
import { jsonReport, markdownReport, type Machine } from '../../bench/report.ts'
import { summarize } from '../../bench/result.ts'
import type { Figure, Scenario } from '../../bench/scenario.ts'
import { scenarios } from '../../bench/scenarios.ts'
import { median, percentile } from '../../bench/statistics.ts'

const figures: Figure[] = [
  { id: 'p50', what: 'p50', unit: 'ms', toReach: { atMost: 10 } },
  { id: 'rate', what: 'rate', unit: '/s', toReach: { atLeast: 100 } },
  { id: 'bare', what: 'bare p50', unit: 'ms', isReference: true },
]
const scenario: Scenario = {
  name: 'one',
  title: 'the one',
  runs: 3,
  figures,
  prepare: async () => ({ measure: async () => ({}), stop: async () => undefined }),
}
const machine: Machine = {
  cpus: 2,
  cpuModel: 'some CPU',
  memoryMiB: 24_000,
  node: 'v24.0.0',
  kubernetes: '1.20',
  quick: false,
}

t.test('a percentile is one of the values: that of the nearest rank', async (t) => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index)
  t.equal(percentile(hundred, 0.5), 50)
  t.equal(percentile(hundred, 0.99), 99)
  t.equal(percentile(hundred, 1), 100)
  t.equal(percentile([7], 0.01), 7)
  t.throws(() => percentile([], 0.5), RangeError)
})

t.test('a median of an even number of values lies between the two in the middle', async (t) => {
  t.equal(median([30, 10, 20]), 20)
  t.equal(median([4, 1, 3, 2]), 2.5)
  t.throws(() => median([]), RangeError)
})

t.test('a figure is met by its median, whatever single runs say', async (t) => {
  const samples = [
    { p50: 9, rate: 50, bare: 1 },
    { p50: 30, rate: 70, bare: 2 },
    { p50: 10, rate: 400, bare: 3 },
  ]
  const { runs, figures: found } = summarize(scenario, samples, 0.5)
  t.equal(runs, 3)
  t.match(found, [
    { median: 10, least: 9, most: 30, isMet: true },
    { median: 70, least: 50, most: 400, isMet: false },
    { median: 2 },
  ])
  t.notOk('isMet' in (found[2] ?? {}), 'a reference has nothing to reach')
})

t.test('a figure that no run reached is left out, and one that nobody declared is a defect', async (t) => {
  const { figures: found } = summarize(scenario, [{ p50: 1 }, { p50: 3, rate: 5 }], 0)
  t.match(found, [
    { figure: { id: 'p50' }, values: [1, 3] },
    { figure: { id: 'rate' }, values: [5] },
  ])
  t.equal(found.length, 2)
  t.throws(() => summarize(scenario, [{ p99: 1 }], 0), /p99/)
})

t.test('the table says what was measured beside what, and whether it reached the figure', async (t) => {
  const sample = { p50: 12.3456, rate: 1234.5, bare: 0.0123456 }
  const text = markdownReport(machine, [summarize(scenario, [sample, sample], 0.25)])
  t.match(text, '| the one (runs: 2, load before: 0.3) | p50 | 12.3 ms | 12.3–12.3 ms | ≤ 10 ms | **not met** |')
  t.match(text, '| rate | 1235 /s | 1235–1235 /s | ≥ 100 /s | met |')
  t.match(text, '| reference: bare p50 | 0.0123 ms |')
  t.match(text, /^2 CPUs \(some CPU\), 23 GiB, Node v24\.0\.0, Kubernetes 1\.20;/)
  t.notMatch(text, '--quick')
  t.match(markdownReport({ ...machine, quick: true }, []), '--quick')
})

t.test('the JSON holds every value of every run', async (t) => {
  const results = [summarize(scenario, [{ p50: 1 }, { p50: 2 }], 0)]
  t.match(JSON.parse(jsonReport(machine, results)), {
    machine: { cpus: 2 },
    scenarios: [{ figures: [{ values: [1, 2] }] }],
  })
})

t.test('scenarios and their figures have names of their own', async (t) => {
  const names = scenarios.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  for (const each of scenarios) {
    const ids = each.figures.map(({ id }) => id)
    t.equal(new Set(ids).size, ids.length, each.name)
    t.ok(each.runs >= 1, each.name)
  }
})
