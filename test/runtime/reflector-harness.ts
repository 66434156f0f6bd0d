import { pino } from 'pino'
import type { Change } from '../../src/runtime/informer.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createReflector } from '../../src/runtime/reflector.ts'
import type { RestartReason } from '../../src/runtime/restart-reason.ts'
import { ScriptedApi, type Thing, things } from './scripted-api.ts'

export const minuteMs = 60_000

/** A reflector against a scripted API, stopped when the test ends. */
export async function start(t_: { teardown(fn: () => Promise<void>): void }, api = new ScriptedApi(), jitter = 0) {
  const clock = new ManualClock()
  const stop = new AbortController()
  const restarts: RestartReason[] = []
  const changes: string[] = []
  let handlerErrors = 0
  const informer = createReflector({
    client: api,
    resource: things,
    namespace: 'ns',
    labelSelector: 'a=b',
    indexes: { value: (thing) => [String(thing.spec.value)] },
    clock,
    log: pino({ level: 'silent' }),
    onRestart: (reason) => restarts.push(reason),
    onHandlerError: () => (handlerErrors += 1),
    random: () => jitter,
    freeze: true,
  })
  informer.onChange((change) => changes.push(describe(change)))
  const running = informer.run(stop.signal)
  const end = async (): Promise<void> => {
    stop.abort()
    await running
  }
  t_.teardown(end)
  await clock.advance(0)
  return { api, clock, informer, restarts, changes, end, handlerErrors: () => handlerErrors }
}

export function describe(change: Change<Thing>): string {
  const { metadata, spec } = change.object
  const from = change.kind === 'updated' ? `${change.previous.spec.value}→` : ''
  return `${change.kind} ${metadata.name} ${metadata.uid} ${from}${spec.value}`
}

/** How many watches were opened while `ms` passed. */
export async function watchesOpened(
  { api, clock }: { api: ScriptedApi; clock: ManualClock },
  ms: number,
): Promise<number> {
  const before = api.watches.length
  await clock.advance(ms)
  return api.watches.length - before
}
