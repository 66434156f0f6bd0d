import * as fc from 'fast-check'
import { pino } from 'pino'
import t from 'tap'
import { createLeaderElection } from '../../src/runtime/leader-election.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { type Fate, LeaseServer } from './lease-server.ts'

/** A write sent at the last allowed moment is over this much later. */
const writeMs = 3_000
const stepMs = 500

const anyFate = fc.constantFrom<Fate>('ok', 'ok', 'unreachable', 'lost-reply', 'hang')
const anyPhase = fc.record({ fates: fc.tuple(anyFate, anyFate, anyFate), ms: fc.nat({ max: 20_000 }) })

t.test('whatever becomes of their requests, no two processes can have writes under way at one time', async (t) => {
  let terms = 0
  await fc.assert(
    fc.asyncProperty(fc.array(anyPhase, { maxLength: 30 }), async (phases) => {
      const clock = new ManualClock()
      const server = new LeaseServer()
      const fates: Fate[] = ['ok', 'ok', 'ok']
      const stop = new AbortController()
      const elections = fates.map((_, index) =>
        createLeaderElection({
          client: server.client(() => fates[index] ?? 'ok'),
          namespace: 'ns',
          name: 'lease',
          identity: `process-${index}`,
          clock,
          log: pino({ level: 'silent' }),
          random: () => index / 3,
        }),
      )
      const lead = async (signal: AbortSignal): Promise<void> => {
        terms += 1
        await clock.sleep(Infinity, signal)
      }
      const running = Promise.all(elections.map((election) => election.run(lead, stop.signal)))
      const writingUntilMs = elections.map(() => -1)
      for (const { fates: next, ms } of phases) {
        fates.splice(0, 3, ...next)
        for (let passed = 0; passed < ms; passed += stepMs) {
          await clock.advance(stepMs)
          const nowMs = clock.monotonic()
          elections.forEach((election, index) => {
            if (election.canWrite()) writingUntilMs[index] = nowMs + writeMs
          })
          const writers = writingUntilMs.filter((untilMs) => untilMs > nowMs)
          if (writers.length > 1) throw new Error(`${writers.length} processes write at ${nowMs}`)
        }
      }
      fates.fill('ok')
      await clock.advance(60_000)
      if (elections.filter((election) => election.canWrite()).length !== 1) throw new Error('nobody leads in the end')
      stop.abort()
      await running
    }),
    { numRuns: 60 },
  )
  t.ok(terms > 60, 'and the lead changed hands')
})
