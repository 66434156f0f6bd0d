import { sandboxClaimKind } from '../../src/api/kinds.ts'
import { createPool, createTemplate } from '../cluster/pool.ts'
import { untilQuiet } from '../cluster/quiet.ts'
import { namespace, startStage, type Stage } from '../cluster/stage.ts'
import type { Scenario } from '../scenario.ts'
import { percentile } from '../statistics.ts'
import { whileUnregistered } from '../../test/e2e/registration.ts'

export const gateThroughApi: Scenario = {
  name: 'gate-through-api',
  title: 'gate, through the API server: creates of claims, one after the other',
  runs: 5,
  figures: [
    { id: 'with', what: 'create with our webhooks, p50', unit: 'ms' },
    { id: 'with99', what: 'create with our webhooks, p99', unit: 'ms' },
    { id: 'without', what: 'create without webhooks, p50', unit: 'ms', isReference: true },
    { id: 'without99', what: 'create without webhooks, p99', unit: 'ms', isReference: true },
    { id: 'added', what: 'added by mutate and validate together, p50', unit: 'ms', toReach: { atMost: 3 } },
  ],
  async prepare(context) {
    // The gate alone: nobody binds the claims, so nothing but their creation goes on.
    const stage = await startStage(context, { flags: ['--gate'] })
    await createTemplate(stage)
    await createPool(stage, 'python', 0)
    const count = context.quick ? 50 : 300
    await createClaims(stage, count)
    return {
      async measure() {
        await untilQuiet(stage)
        // Half before and half after, so that a machine that grows slower or faster favours neither side.
        const before = await createClaims(stage, count / 2)
        const without = await whileUnregistered(stage.client, () => createClaims(stage, count))
        const withGate = [...before, ...(await createClaims(stage, count / 2))]
        return {
          with: percentile(withGate, 0.5),
          with99: percentile(withGate, 0.99),
          without: percentile(without, 0.5),
          without99: percentile(without, 0.99),
          added: percentile(withGate, 0.5) - percentile(without, 0.5),
        }
      },
      stop: () => stage.stop(),
    }
  },
}

/** How long each create took, in milliseconds. */
async function createClaims({ client }: Stage, count: number): Promise<number[]> {
  const took: number[] = []
  for (let index = 0; index < count; index++) {
    const claim = { metadata: { namespace, generateName: 'bench-' }, spec: { warmPoolRef: { name: 'python' } } }
    const sentAt = performance.now()
    await client.create(sandboxClaimKind, claim)
    took.push(performance.now() - sentAt)
  }
  return took
}
