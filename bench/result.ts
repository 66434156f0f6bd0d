import type { Bound, Figure, Sample, Scenario } from './scenario.ts'
import { median } from './statistics.ts'

/** A figure over all runs of its scenario. */
export interface FigureResult {
  readonly figure: Figure
  /** One for each run that measured it, in the order of the runs. */
  readonly values: readonly number[]
  readonly median: number
  readonly least: number
  readonly most: number
  /** Whether the median is within the bound; absent when there is none. */
  readonly isMet?: boolean
}

export interface ScenarioResult {
  readonly scenario: Pick<Scenario, 'name' | 'title'>
  readonly runs: number
  /** The machine's load average (1 min) before the first run: what others did. */
  readonly loadBefore: number
  readonly figures: readonly FigureResult[]
}

/**
 * Puts the samples of a scenario's runs together; figures that no run measured are left out.
 * @throws Error naming a number in a sample that the scenario does not declare
 */
export function summarize(scenario: Scenario, samples: readonly Sample[], loadBefore: number): ScenarioResult {
  const declared = new Set(scenario.figures.map(({ id }) => id))
  const stray = samples.flatMap((sample) => Object.keys(sample)).find((id) => !declared.has(id))
  if (stray !== undefined) throw new Error(`scenario ${scenario.name} measures ${stray} but declares no such figure`)
  const figures = scenario.figures.flatMap((figure) => {
    const values = samples.flatMap((sample) => sample[figure.id] ?? [])
    return values.length === 0 ? [] : [resultOf(figure, values)]
  })
  const { name, title } = scenario
  return { scenario: { name, title }, runs: samples.length, loadBefore, figures }
}

function resultOf(figure: Figure, values: readonly number[]): FigureResult {
  const middle = median(values)
  const result = { figure, values, median: middle, least: Math.min(...values), most: Math.max(...values) }
  return figure.toReach ? { ...result, isMet: isWithin(middle, figure.toReach) } : result
}

function isWithin(value: number, bound: Bound): boolean {
  return 'atMost' in bound ? value <= bound.atMost : value >= bound.atLeast
}
