import { pods } from '../../src/api/core.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { createClaimant, tenPerSecond } from '../cluster/claims.ts'
import { createPool, createTemplate, followStock, scalePool, type Stock } from '../cluster/pool.ts'
import { pause, untilQuiet } from '../cluster/quiet.ts'
import { namespace, startStage, type Stage } from '../cluster/stage.ts'
import { cpuDuring, rssMiBOf } from '../process-usage.ts'
import type { BenchContext, Bound, Figure, Sample, Scenario } from '../scenario.ts'
import { percentile } from '../statistics.ts'

const levels = [300, 1_000, 3_000, 10_000]
const rssBounds: Readonly<Record<number, Bound>> = { 300: { atMost: 120 }, 10_000: { atMost: 400 } }
/** Claims are measured on this one; the others grow around it. */
const claimPool = { name: 'python', replicas: 100 }
const fillers = Array.from({ length: 10 }, (_, index) => `filler-${index}`)
const touched = 200

/** One run: the second would need a cluster of its own, and ten thousand sandboxes take minutes to make. */
export const growth: Scenario = {
  name: 'growth',
  title: 'growth to 10,000 sandboxes in eleven pools',
  runs: 1,
  figures: [
    ...levels.flatMap(figuresAt),
    { id: 'p50Growth', what: 'claim p50 at 10,000 against 1,000', unit: '×', toReach: { atMost: 1.5 } },
  ],
  prepare: async (context) => ({ measure: () => measure(context), stop: async () => undefined }),
}

function figuresAt(level: number): Figure[] {
  const at = `at ${level.toLocaleString('en')}`
  const rss = rssBounds[level]
  return [
    { id: `rss${level}`, what: `RSS ${at}`, unit: 'MiB', ...(rss && { toReach: rss }) },
    { id: `idle${level}`, what: `CPU idle ${at}`, unit: '%' },
    { id: `noop${level}`, what: `CPU for an event that changes nothing ${at}`, unit: 'ms' },
    { id: `p50${level}`, what: `claim p50 ${at}`, unit: 'ms' },
    { id: `fill${level}`, what: `filled up ${at}`, unit: '/s' },
  ]
}

async function measure(context: BenchContext): Promise<Sample> {
  const stage = await startStage(context)
  try {
    const stock = await followStock(stage)
    await createTemplate(stage)
    await createPool(stage, claimPool.name, claimPool.replicas)
    for (const name of fillers) await createPool(stage, name, 0)
    await stock.whenReady(claimPool.name, claimPool.replicas)
    const sample: Record<string, number> = {}
    for (const level of context.quick ? levels.slice(0, 2) : levels) {
      context.say(`growing to ${level}`)
      Object.assign(sample, await measureAt(level, stage, stock, context.quick))
    }
    const [from, to] = [sample['p501000'], sample['p5010000']]
    return { ...sample, ...(from !== undefined && to !== undefined && { p50Growth: to / from }) }
  } finally {
    await stage.stop()
  }
}

async function measureAt(level: number, stage: Stage, stock: Stock, quick: boolean): Promise<Sample> {
  const { pid } = stage.product.process
  const before = stock.sandboxes.store.size
  const startedAt = performance.now()
  const each = (level - claimPool.replicas) / fillers.length
  for (const name of fillers) await scalePool(stage, name, each)
  await Promise.all(fillers.map((name) => stock.whenReady(name, each, 20 * 60_000)))
  const fillSeconds = (performance.now() - startedAt) / 1000
  await untilQuiet(stage)
  const idleMs = quick ? 3_000 : 20_000
  const idleShare = (await cpuDuring(pid, () => pause(idleMs))) / idleMs
  const touchedAt = performance.now()
  const touching = await cpuDuring(pid, () => touchPods(stage, level))
  const noop = Math.max(0, touching - idleShare * (performance.now() - touchedAt))
  const took = await claimTimes(stage, stock, quick ? 30 : 100)
  return {
    [`rss${level}`]: await rssMiBOf(pid),
    [`idle${level}`]: 100 * idleShare,
    [`noop${level}`]: noop / touched,
    [`p50${level}`]: percentile(took, 0.5),
    [`fill${level}`]: (level - before) / fillSeconds,
  }
}

async function claimTimes(stage: Stage, stock: Stock, count: number): Promise<number[]> {
  const claimant = await createClaimant(stage)
  const timings = await claimant.claim(claimPool.name, count, tenPerSecond)
  await stock.whenReady(claimPool.name, claimPool.replicas)
  await claimant.clear(stock)
  claimant.claims.stop()
  await untilQuiet(stage)
  return timings.map(({ tookMs }) => tookMs)
}

/** Writes what no controller reads on Pods of sandboxes, so that each is looked at once more and left as it is. */
async function touchPods(stage: Stage, mark: number): Promise<void> {
  const { client } = stage
  const { items } = await client.list(pods, { namespace, labelSelector: labels.sandboxNameHash, limit: touched })
  for (const { metadata } of items) {
    const patch = { metadata: { annotations: { 'bench/touched': String(mark) } } }
    // The status subresource, which no webhook is asked about.
    const options = { type: 'merge', subresource: 'status' } as const
    await client.patch(pods, { namespace, name: metadata.name ?? '' }, patch, options)
  }
  await untilQuiet(stage)
}
