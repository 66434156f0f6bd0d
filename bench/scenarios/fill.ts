import { pods, type Pod } from '../../src/api/core.ts'
import { follow, type Follower } from '../cluster/follower.ts'
import { createPool, createTemplate, followStock, scalePool } from '../cluster/pool.ts'
import { untilQuiet } from '../cluster/quiet.ts'
import { namespace, startStage, type Stage } from '../cluster/stage.ts'
import type { Scenario } from '../scenario.ts'

const pool = 'python'

export const fill: Scenario = {
  name: 'fill',
  title: 'pool from 0 to 300',
  runs: 3,
  figures: [
    { id: 'filled', what: 'scaled → 300 sandboxes Ready', unit: 's', toReach: { atMost: 5 } },
    { id: 'bare', what: '300 bare Pods created at once → all Ready', unit: 's', isReference: true },
    { id: 'ratio', what: 'against bare Pods', unit: '×' },
    { id: 'apiServerCpu', what: 'API server CPU, per sandbox', unit: 'ms' },
    { id: 'bareCpu', what: 'API server CPU, per bare Pod', unit: 'ms', isReference: true },
  ],
  async prepare(context) {
    const stage = await startStage(context)
    const { apiServer } = stage.controlPlane
    const count = context.quick ? 100 : 300
    const stock = await followStock(stage)
    const allPods = await follow(stage, pods)
    await createTemplate(stage)
    await createPool(stage, pool, 0)
    return {
      async measure() {
        await untilQuiet(stage)
        const bare = await withCpu(apiServer, () => fillBare(stage, allPods, count))
        await untilQuiet(stage)
        const filled = await withCpu(apiServer, async () => {
          const startedAt = performance.now()
          await scalePool(stage, pool, count)
          return (await stock.whenReady(pool, count)) - startedAt
        })
        await scalePool(stage, pool, 0)
        await allPods.when('the end of the pool', () => allPods.store.size + stock.sandboxes.store.size === 0)
        return {
          filled: filled.ms / 1000,
          bare: bare.ms / 1000,
          ratio: filled.ms / bare.ms,
          apiServerCpu: filled.cpuMs / count,
          bareCpu: bare.cpuMs / count,
        }
      },
      stop: () => stage.stop(),
    }
  },
}

async function withCpu(apiServer: Stage['controlPlane']['apiServer'], work: () => Promise<number>) {
  const before = await apiServer.cpuMs()
  const ms = await work()
  return { ms, cpuMs: (await apiServer.cpuMs()) - before }
}

/** What scheduler, nodes and API server need for as many Pods that no webhook and no controller has to do with. */
async function fillBare({ client }: Stage, followed: Follower<Pod>, count: number): Promise<number> {
  const names = Array.from({ length: count }, (_, index) => `bare-${index}`)
  const ready = new Set<string>()
  followed.onChange(({ kind, object }) => {
    const { name = '' } = object.metadata
    if (kind !== 'deleted' && isReady(object)) ready.add(name)
    else ready.delete(name)
  })
  const spec = { containers: [{ name: 'main', image: 'python:3.13-slim' }] }
  const startedAt = performance.now()
  await Promise.all(names.map((name) => client.create(pods, { metadata: { namespace, name }, spec }, patient)))
  const tookMs = (await followed.when('the bare Pods', () => ready.size === count)) - startedAt
  const options = { gracePeriodSeconds: 0, ...patient }
  await Promise.all(names.map((name) => client.delete(pods, { namespace, name }, options)))
  await followed.when('the end of the bare Pods', () => followed.store.size === 0)
  return tookMs
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false
}

/** A burst waits in line; that is what is measured. */
const patient = { timeoutMs: 60_000 }
