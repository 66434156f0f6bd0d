import * as fc from 'fast-check'
import t from 'tap'
import type { Change } from '../../src/runtime/informer.ts'
import { minuteMs, start } from './reflector-harness.ts'
import { kubeError, ScriptedApi, type Thing } from './scripted-api.ts'

const faults = [
  kubeError('ServerError', 500),
  kubeError('OutcomeUnknown', 0),
  kubeError('Unauthorized', 401),
  kubeError('TooManyRequests', 429, 2_000),
  kubeError('Expired', 410),
]
const anyName = fc.constantFrom('a', 'b', 'c', 'd')
const anyFault = fc.constantFrom(...faults)

/** What can happen to the server, the connection and the reflector. */
const anyStep = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), name: anyName, value: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), name: anyName }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('recreate' as const), name: anyName }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(0, 100, 5_000, 200_000) }),
  },
  fc.record({ do: fc.constant('break' as const), fault: anyFault }),
  fc.record({ do: fc.constant('failWatch' as const), fault: anyFault }),
  fc.record({ do: fc.constant('failList' as const), fault: anyFault }),
  fc.record({ do: fc.constantFrom('close', 'compact', 'bookmark', 'error410', 'error500', 'replay', 'relist') }),
)
type Step = (typeof anyStep extends fc.Arbitrary<infer S> ? S : never) & { do: string }

type Harness = Awaited<ReturnType<typeof start>>

async function perform(step: Step, { api, clock, informer }: Harness): Promise<void> {
  switch (step.do) {
    case 'put':
      return void api.put(step.name, step.value)
    case 'remove':
      return api.remove(step.name)
    case 'recreate':
      api.remove(step.name)
      return void api.put(step.name)
    case 'pass':
      return clock.advance(step.ms)
    case 'break':
      return api.openWatches.forEach((watch) => watch.break(step.fault))
    case 'failWatch':
      return void api.watchFaults.push(step.fault)
    case 'failList':
      return void api.listFaults.push(step.fault)
    case 'close':
      return api.openWatches.forEach((watch) => watch.close())
    case 'compact':
      return api.compact()
    case 'bookmark':
      return api.bookmark()
    case 'error410':
      return api.openWatches.forEach((watch) => watch.send({ type: 'ERROR', object: { code: 410 } }))
    case 'error500':
      return api.openWatches.forEach((watch) => watch.send({ type: 'ERROR', object: { code: 500 } }))
    case 'replay':
      return api.replay()
    case 'relist':
      return void informer.relist().catch(() => {})
    default:
      throw new Error(`no step ${JSON.stringify(step)}`)
  }
}

/** Follows the changes as a handler would; throws on one that does not follow from those before it. */
function follow(known: Map<string, Thing>, change: Change<Thing>): void {
  const { name = '', uid } = change.object.metadata
  const before = known.get(name)
  const follows =
    change.kind === 'added'
      ? before === undefined
      : change.kind === 'updated'
        ? before === change.previous && before.metadata.uid === uid && isNewer(change.object, before)
        : before?.metadata.uid === uid
  if (!follows) throw new Error(`${change.kind} ${name} does not follow`)
  if (change.kind === 'deleted') known.delete(name)
  else known.set(name, change.object)
}

function isNewer(a: Thing, b: Thing): boolean {
  return Number(a.metadata.resourceVersion) > Number(b.metadata.resourceVersion)
}

function content(things: Iterable<Thing>): string[] {
  return [...things].map(({ metadata: m, spec }) => `${m.name} ${m.uid} ${m.resourceVersion} ${spec.value}`).sort()
}

t.test('whatever happens, handlers see a consistent history and the store ends as the server is', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), async (steps, pageSize) => {
      const api = new ScriptedApi()
      api.pageSize = pageSize
      const teardowns: (() => Promise<void>)[] = []
      const harness = await start({ teardown: (end) => teardowns.push(end) }, api, 0.5)
      const known = new Map<string, Thing>()
      for (const object of harness.informer.store.values()) known.set(object.metadata.name ?? '', object)
      const inconsistencies: unknown[] = []
      harness.informer.onChange((change) => {
        try {
          follow(known, change)
        } catch (error) {
          inconsistencies.push(error)
        }
      })
      for (const each of steps) await perform(each, harness)
      await harness.clock.advance(60 * minuteMs)

      if (inconsistencies.length > 0) throw inconsistencies[0]
      const expected = content(api.objects.values())
      const outcomes = { store: content(harness.informer.store.values()), handlers: content(known.values()) }
      for (const [where, found] of Object.entries(outcomes)) {
        if (found.join() !== expected.join()) throw new Error(`${where}: ${found.join()} instead of ${expected.join()}`)
      }
      if (api.openWatches.length !== 1) throw new Error(`${api.openWatches.length} watches are open`)
      for (const end of teardowns) await end()
      if (harness.clock.pendingTimers > 0) throw new Error('a timer was left behind')
    }),
    { numRuns: 300 },
  )
  t.pass('300 histories')
})
