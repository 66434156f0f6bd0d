import { readFile } from 'node:fs/promises'
import t from 'tap'
import { parse } from 'yaml'
import { createMetrics } from '../../src/telemetry/metrics.ts'

const folder = new URL('../../manifests/monitoring/', import.meta.url)
const read = (name: string) => readFile(new URL(name, folder), 'utf8')

/** What Prometheus adds to the name of a histogram, and what it brings itself. */
const suffix = /_(bucket|sum|count)$/
const builtin = new Set(['up'])

t.test('alerts and dashboard speak of metrics that exist, with labels that those have', async (t) => {
  const exported = new Map<string, readonly string[]>()
  for (const metric of createMetrics({ version: '0' }).registry.getMetricsAsArray()) {
    // prom-client keeps label names on the metric without declaring them.
    exported.set(metric.name, (metric as unknown as { labelNames: string[] }).labelNames)
  }
  const expressions = [...alertExpressions(await read('alerts.yaml')), ...panelExpressions(await read('sandgate.json'))]
  t.ok(expressions.length > 15)
  for (const expression of expressions) {
    const names = expression.match(/\b(?:sandgate_|agent_sandbox)[a-z_]+|\bup\b/g) ?? []
    t.ok(names.length > 0, expression)
    for (const name of names) t.ok(builtin.has(name) || exported.has(name.replace(suffix, '')), name)
    const known = new Set(['le', 'job', ...names.flatMap((name) => exported.get(name.replace(suffix, '')) ?? [])])
    const grouped = [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(
      ([, list]) => list?.split(/,\s*/) ?? [],
    )
    const selected = [...expression.matchAll(/(\w+)(?:=|!=|=~|!~)"/g)].map(([, label]) => label ?? '')
    t.same(
      [...grouped, ...selected].filter((label) => !known.has(label)),
      [],
      expression,
    )
  }
})

t.test('every alert has a line on what to do in docs/operations.md', async (t) => {
  const handbook = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')
  const { spec } = parse(await read('alerts.yaml')) as RuleFile
  for (const { alert } of spec.groups.flatMap(({ rules }) => rules)) {
    t.ok(new RegExp(`\\| ${alert} +\\|`).test(handbook), alert)
  }
})

interface RuleFile {
  spec: { groups: { rules: { alert: string; expr: string }[] }[] }
}

function alertExpressions(text: string): string[] {
  return (parse(text) as RuleFile).spec.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr))
}

function panelExpressions(text: string): string[] {
  const { panels } = JSON.parse(text) as { panels: { targets: { expr: string }[] }[] }
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
}
