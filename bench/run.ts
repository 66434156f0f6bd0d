// `npm run bench [-- --only NAME --runs N --quick]`: measures on a control plane of its own, shows each scenario as it is
// done, and writes a Markdown table and JSON to bench/results/. Whether a figure is met is printed, never asserted.
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg, totalmem } from 'node:os'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { findControlPlane } from '../devcluster/binaries.ts'
import { jsonReport, markdownReport, screenReport, type Machine } from './report.ts'
import { summarize, type ScenarioResult } from './result.ts'
import type { BenchContext, Sample, Scenario } from './scenario.ts'
import { scenarios } from './scenarios.ts'

const resultsFolder = fileURLToPath(new URL('results/', import.meta.url))
const print = (line: string) => void process.stdout.write(`${line}\n`)

const usage = `Usage: npm run bench -- [--only NAME]… [--runs N] [--quick] [--list]

  --only NAME  measure this scenario alone; may be repeated
  --runs N     measure each scenario N times
  --quick      fewer requests and sandboxes: to see that the measuring works
  --list       name the scenarios and end`

async function main(): Promise<void> {
  const { values: flags } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      runs: { type: 'string' },
      quick: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (flags.help) return print(usage)
  if (flags.list) return print(scenarios.map(({ name, title }) => `${name.padEnd(20)} ${title}`).join('\n'))
  const chosen = chosenScenarios(flags.only)
  const runs = runsFlag(flags.runs)
  const machine = await describeMachine(flags.quick)
  const results: ScenarioResult[] = []
  for (const scenario of chosen) {
    results.push(await run(scenario, runs ?? (flags.quick ? 1 : scenario.runs), flags.quick))
  }
  print(`\n${markdownReport(machine, results)}`)
  print(await save(machine, results))
}

async function run(scenario: Scenario, runs: number, quick: boolean): Promise<ScenarioResult> {
  print(`\n${scenario.name}: ${scenario.title}`)
  const startedAt = performance.now()
  const say = (line: string) => print(`  … ${line} (${Math.round((performance.now() - startedAt) / 1000)} s)`)
  const context: BenchContext = { quick, say }
  const [loadBefore = 0] = loadavg()
  const rig = await scenario.prepare(context)
  const samples: Sample[] = []
  try {
    for (let index = 1; index <= runs; index++) {
      say(`run ${index} of ${runs}`)
      samples.push(await rig.measure())
    }
  } finally {
    await rig.stop()
  }
  const result = summarize(scenario, samples, loadBefore)
  print(screenReport(result))
  return result
}

function chosenScenarios(names: readonly string[]): readonly Scenario[] {
  const unknown = names.find((name) => !scenarios.some((scenario) => scenario.name === name))
  if (unknown === undefined)
    return names.length === 0 ? scenarios : scenarios.filter(({ name }) => names.includes(name))
  throw new Error(`there is no scenario ${unknown}; there are ${scenarios.map(({ name }) => name).join(', ')}`)
}

function runsFlag(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^[1-9]\d*$/.test(text)) return Number(text)
  throw new Error(`--runs takes a number from 1, not '${text}'`)
}

async function describeMachine(quick: boolean): Promise<Machine> {
  const { minorVersion } = await findControlPlane(print)
  return {
    cpus: cpus().length,
    cpuModel: cpus()[0]?.model ?? 'unknown',
    memoryMiB: Math.round(totalmem() / 2 ** 20),
    node: process.version,
    kubernetes: `1.${minorVersion}`,
    quick,
  }
}

/** Returns the path of the table. */
async function save(machine: Machine, results: readonly ScenarioResult[]): Promise<string> {
  await mkdir(resultsFolder, { recursive: true })
  const base = `${resultsFolder}${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  await writeFile(`${base}.json`, jsonReport(machine, results))
  await writeFile(`${base}.md`, markdownReport(machine, results))
  return `${base}.md`
}

try {
  await main()
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`)
  // A rig that failed half-way may leave watches open. The control plane ends with this process.
  process.exit(1)
}
