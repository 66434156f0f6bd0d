import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createPool, createTemplate, followStock } from '../cluster/pool.ts'
import { untilQuiet } from '../cluster/quiet.ts'
import { startStage } from '../cluster/stage.ts'
import { rssMiBOf } from '../process-usage.ts'
import type { Scenario } from '../scenario.ts'

export const start: Scenario = {
  name: 'start',
  title: 'start with 1,000 sandboxes',
  runs: 5,
  figures: [
    { id: 'ready', what: 'process start → ready', unit: 's', toReach: { atMost: 3 } },
    { id: 'bare', what: 'a Node process that does nothing, start to end', unit: 's', isReference: true },
    { id: 'rss', what: 'RSS when ready', unit: 'MiB' },
  ],
  async prepare(context) {
    const stage = await startStage(context)
    const count = context.quick ? 200 : 1_000
    const stock = await followStock(stage)
    await createTemplate(stage)
    context.say(`filling a pool of ${count}`)
    await createPool(stage, 'python', count)
    await stock.whenReady('python', count, 10 * 60_000)
    return {
      async measure() {
        await untilQuiet(stage)
        const bare = await bareStart()
        await stage.product.process.stop()
        const startedAt = performance.now()
        await stage.product.start()
        const ready = performance.now() - startedAt
        const rss = await rssMiBOf(stage.product.process.pid)
        return { ready: ready / 1000, bare: bare / 1000, rss }
      },
      stop: () => stage.stop(),
    }
  },
}

async function bareStart(): Promise<number> {
  const startedAt = performance.now()
  await once(spawn(process.execPath, ['--eval', '0'], { stdio: 'ignore' }), 'exit')
  return performance.now() - startedAt
}
