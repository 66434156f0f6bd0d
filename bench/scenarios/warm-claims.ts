import { atOnce, bareRoundTrips, createClaimant, tenPerSecond, type Pace } from '../cluster/claims.ts'
import { createPool, createTemplate, followStock } from '../cluster/pool.ts'
import { untilQuiet } from '../cluster/quiet.ts'
import { startStage } from '../cluster/stage.ts'
import { cpuDuring } from '../process-usage.ts'
import type { BenchContext, Bound, Figure, Rig, Sample, Scenario } from '../scenario.ts'
import { percentile } from '../statistics.ts'

const pool = 'python'

export const steady: Scenario = {
  name: 'steady',
  title: 'warm claims, 10 a second, pool of 100',
  runs: 3,
  figures: figures({ p50: { atMost: 10 }, p99: { atMost: 30 } }),
  prepare: (context) => prepare(context, { replicas: 100, count: context.quick ? 50 : 300, pace: tenPerSecond }),
}

export const burst100: Scenario = {
  name: 'burst-100',
  title: '100 claims at once, pool of 100',
  runs: 5,
  figures: figures({ p50: { atMost: 250 }, p99: { atMost: 500 }, warm: { atLeast: 100 } }),
  prepare: (context) => prepare(context, { replicas: 100, count: 100, pace: atOnce }),
}

export const burst300: Scenario = {
  name: 'burst-300',
  title: '300 claims at once, pool of 300',
  runs: 5,
  figures: figures({ p50: { atMost: 1_000 }, p99: { atMost: 2_000 }, apiServerCpu: { atMost: 35 } }),
  prepare: (context) => prepare(context, { replicas: 300, count: 300, pace: atOnce }),
}

function figures(bounds: Readonly<Record<string, Bound>>): Figure[] {
  const all: Figure[] = [
    { id: 'p50', what: 'claim create → Ready, p50', unit: 'ms' },
    { id: 'p99', what: 'claim create → Ready, p99', unit: 'ms' },
    { id: 'bareP50', what: 'create → watch of as many bare objects, p50', unit: 'ms', isReference: true },
    { id: 'bareP99', what: 'create → watch of as many bare objects, p99', unit: 'ms', isReference: true },
    { id: 'warm', what: 'claims that got a warm sandbox', unit: '' },
    { id: 'refill', what: 'first create → pool full again', unit: 's' },
    { id: 'apiServerCpu', what: 'API server CPU, a claim with its refill', unit: 'ms' },
    { id: 'productCpu', what: 'CPU of sandgate, a claim with its refill', unit: 'ms' },
  ]
  return all.map((figure) => {
    const toReach = bounds[figure.id]
    return toReach ? { ...figure, toReach } : figure
  })
}

interface Demand {
  readonly replicas: number
  readonly count: number
  readonly pace: Pace
}

/** Each run starts with a full pool and nothing else under way, and leaves it so. */
async function prepare(context: BenchContext, { replicas, count, pace }: Demand): Promise<Rig> {
  const stage = await startStage(context)
  const { apiServer } = stage.controlPlane
  const stock = await followStock(stage)
  const claimant = await createClaimant(stage)
  await createTemplate(stage)
  await createPool(stage, pool, replicas)
  await stock.whenReady(pool, replicas)

  const measure = async (): Promise<Sample> => {
    await untilQuiet(stage)
    const bare = (await bareRoundTrips(stage, count, pace)).map(({ tookMs }) => tookMs)
    await untilQuiet(stage)
    const before = { apiServer: await apiServer.cpuMs(), at: performance.now() }
    let refilledAt = Number.NaN
    let timings: Awaited<ReturnType<typeof claimant.claim>> = []
    const productCpu = await cpuDuring(stage.product.process.pid, async () => {
      timings = await claimant.claim(pool, count, pace)
      refilledAt = await stock.whenReady(pool, replicas)
    })
    const apiServerCpu = (await apiServer.cpuMs()) - before.apiServer
    const warm = claimant.countWarm(timings, stock)
    const took = timings.map(({ tookMs }) => tookMs)
    await claimant.clear(stock)
    return {
      p50: percentile(took, 0.5),
      p99: percentile(took, 0.99),
      bareP50: percentile(bare, 0.5),
      bareP99: percentile(bare, 0.99),
      warm,
      refill: (refilledAt - before.at) / 1000,
      apiServerCpu: apiServerCpu / count,
      productCpu: productCpu / count,
    }
  }
  return { measure, stop: () => stage.stop() }
}
