import { claimReview } from '../gate/objects.ts'
import { startServerChild } from '../gate/child.ts'
import { load, type Target } from '../gate/load.ts'
import type { Figure, Sample, Scenario } from '../scenario.ts'
import { percentile } from '../statistics.ts'

const path = '/validate/claims'
const connectionCounts = [1, 25] as const
/** A server that has just started runs interpreted code; this many requests make it a warm one. */
const warmUp = 4_000

export const gateDirect: Scenario = {
  name: 'gate-direct',
  title: 'gate, direct: 4 KB claim reviews through every rule, kept-alive TLS',
  runs: 5,
  figures: connectionCounts.flatMap(figuresAt),
  async prepare({ quick }) {
    const [gate, bare] = await Promise.all([startServerChild('gate'), startServerChild('bare')])
    const body = claimReview()
    await load(gate, path, body, { connections: 1, requests: warmUp })
    await load(bare, path, body, { connections: 1, requests: warmUp })
    const requests = quick ? 2_000 : 10_000
    return {
      async measure() {
        const sample: Record<string, number> = {}
        for (const connections of connectionCounts) {
          // One after the other: side by side they would share a core.
          const ofBare = await measureServer(bare, body, connections, requests)
          const ofGate = await measureServer(gate, body, connections, requests)
          Object.assign(sample, named('bare', connections, ofBare), named('gate', connections, ofGate), {
            [`p50Ratio${connections}`]: ofGate.p50 / ofBare.p50,
            [`rateRatio${connections}`]: ofGate.rate / ofBare.rate,
          })
        }
        return sample
      },
      stop: async () => void (await Promise.all([gate.stop(), bare.stop()])),
    }
  },
}

function figuresAt(connections: number): Figure[] {
  const at = connections === 1 ? 'at 1 connection' : `at ${connections} connections`
  return [
    { id: `gateP50${connections}`, what: `p50 ${at}`, unit: 'ms' },
    { id: `gateP99${connections}`, what: `p99 ${at}`, unit: 'ms' },
    { id: `gateRate${connections}`, what: `reviews ${at}`, unit: '/s' },
    { id: `bareP50${connections}`, what: `bare node:https, p50 ${at}`, unit: 'ms', isReference: true },
    { id: `bareP99${connections}`, what: `bare node:https, p99 ${at}`, unit: 'ms', isReference: true },
    { id: `bareRate${connections}`, what: `bare node:https, reviews ${at}`, unit: '/s', isReference: true },
    { id: `p50Ratio${connections}`, what: `p50 against bare ${at}`, unit: '×', toReach: { atMost: 1.5 } },
    { id: `rateRatio${connections}`, what: `throughput against bare ${at}`, unit: '×', toReach: { atLeast: 0.7 } },
  ]
}

interface Measured {
  readonly p50: number
  readonly p99: number
  readonly rate: number
}

async function measureServer(target: Target, body: Buffer, connections: number, requests: number): Promise<Measured> {
  const { latenciesMs, perSecond } = await load(target, path, body, { connections, requests })
  return { p50: percentile(latenciesMs, 0.5), p99: percentile(latenciesMs, 0.99), rate: perSecond }
}

function named(server: 'bare' | 'gate', connections: number, { p50, p99, rate }: Measured): Sample {
  return {
    [`${server}P50${connections}`]: p50,
    [`${server}P99${connections}`]: p99,
    [`${server}Rate${connections}`]: rate,
  }
}
