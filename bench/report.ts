import type { Bound, Unit } from './scenario.ts'
import type { FigureResult, ScenarioResult } from './result.ts'

/** Where and how it was measured: numbers without it mean nothing. */
export interface Machine {
  readonly cpus: number
  readonly cpuModel: string
  readonly memoryMiB: number
  readonly node: string
  readonly kubernetes: string
  readonly quick: boolean
}

const header = [
  '| scenario | measured | median | spread | to reach | |',
  '| --- | --- | ---: | ---: | ---: | --- |',
].join('\n')

/** The whole report as Markdown. */
export function markdownReport(machine: Machine, results: readonly ScenarioResult[]): string {
  const { cpus, cpuModel, memoryMiB, node, kubernetes, quick } = machine
  const lines = [
    `${cpus} CPUs (${cpuModel}), ${Math.round(memoryMiB / 1024)} GiB, Node ${node}, Kubernetes ${kubernetes}; product, control plane, simulated nodes and the measuring client share them.`,
    ...(quick ? ['', 'Measured with `--quick`: fewer requests and fewer sandboxes than the scenarios call for.'] : []),
    '',
    header,
    ...results.flatMap(rowsOf),
  ]
  return `${lines.join('\n')}\n`
}

/** The same for programs: every value of every run. */
export function jsonReport(machine: Machine, results: readonly ScenarioResult[]): string {
  return `${JSON.stringify({ machine, scenarios: results }, null, 2)}\n`
}

/** One scenario for the screen, as soon as it is done. */
export function screenReport(result: ScenarioResult): string {
  const width = Math.max(...result.figures.map(({ figure }) => labelOf(figure).length))
  return result.figures
    .map((each) => {
      const { figure, median, values } = each
      const spread = values.length > 1 ? ` (${spreadOf(each)})` : ''
      const goal = figure.toReach ? `   ${verdictOf(each)}: ${boundText(figure.toReach, figure.unit)}` : ''
      return `  ${labelOf(figure).padEnd(width)}  ${withUnit(median, figure.unit)}${spread}${goal}`
    })
    .join('\n')
}

function rowsOf({ scenario, runs, loadBefore, figures }: ScenarioResult): string[] {
  return figures.map((each, index) => {
    const { figure, median } = each
    const name = index === 0 ? `${scenario.title} (runs: ${runs}, load before: ${loadBefore.toFixed(1)})` : ''
    const goal = figure.toReach ? boundText(figure.toReach, figure.unit) : ''
    const cells = [name, labelOf(figure), withUnit(median, figure.unit), spreadOf(each), goal, verdictOf(each)]
    return `| ${cells.join(' | ')} |`
  })
}

function labelOf({ what, isReference }: { what: string; isReference?: true }): string {
  return isReference ? `reference: ${what}` : what
}

function verdictOf({ isMet }: FigureResult): string {
  if (isMet === undefined) return ''
  return isMet ? 'met' : '**not met**'
}

function spreadOf({ least, most, values, figure }: FigureResult): string {
  return values.length === 1 ? 'one run' : `${rounded(least)}–${withUnit(most, figure.unit)}`
}

function boundText(bound: Bound, unit: Unit): string {
  return 'atMost' in bound ? `≤ ${withUnit(bound.atMost, unit)}` : `≥ ${withUnit(bound.atLeast, unit)}`
}

function withUnit(value: number, unit: Unit): string {
  return unit === '' ? rounded(value) : `${rounded(value)} ${unit}`
}

/** Three digits: nothing here is measured more exactly. */
function rounded(value: number): string {
  if (value >= 100) return String(Math.round(value))
  return String(Number(value.toPrecision(3)))
}
