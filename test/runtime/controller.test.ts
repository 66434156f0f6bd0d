import { pino } from 'pino'
import t from 'tap'
import { type Reconcile, type ReconcileResult, runController } from '../../src/runtime/controller.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { WorkQueue } from '../../src/runtime/work-queue.ts'
import { kubeError } from './scripted-api.ts'

/** A controller under way; log lines of level info and above are kept. */
function start(reconcile: Reconcile, concurrency = 1) {
  const clock = new ManualClock()
  const queue = new WorkQueue({ clock, random: () => 0 })
  const stop = new AbortController()
  const results: ReconcileResult[] = []
  const logged: { msg: string }[] = []
  const log = pino({ base: null }, { write: (line: string) => logged.push(JSON.parse(line) as { msg: string }) })
  const running = runController(
    { name: 'test', queue, reconcile, concurrency, clock, log, onResult: (result) => results.push(result) },
    stop.signal,
  )
  return { clock, queue, stop, results, logged, running }
}

t.test('done ends the back-off of a key', async (t) => {
  let failures = 3
  const { clock, queue, stop, results, running } = start(async () => {
    if ((failures -= 1) >= 0) throw new Error('not yet')
    return { kind: 'done' }
  })
  queue.add('a')
  await clock.advance(1_000)
  t.strictSame(
    results.map(({ verdict }) => verdict),
    ['failed', 'failed', 'failed', 'done'],
  )
  t.equal(queue.failures('a'), 0)
  t.equal(queue.delayed, 0)
  stop.abort()
  await running
})

t.test('recheck ends the back-off and looks again at the time it names', async (t) => {
  const at: number[] = []
  const { clock, queue, stop, running } = start(async () => {
    at.push(clock.monotonic())
    if (at.length === 1) throw new Error('once')
    return at.length === 2 ? { kind: 'recheck', afterMs: 700, because: 'test' } : { kind: 'done' }
  })
  queue.add('a')
  await clock.advance(5)
  t.equal(queue.failures('a'), 0)
  await clock.advance(10_000)
  t.strictSame(at, [0, 5, 705])
  stop.abort()
  await running
})

t.test('an error is logged once, with a constant message, and the key tried again with back-off', async (t) => {
  const error = new Error('broken')
  const { clock, queue, stop, logged, results, running } = start(() => Promise.reject(error))
  queue.add('a')
  await clock.advance(16)
  t.equal(results.length, 3)
  t.equal(logged.length, 3)
  t.match(logged[2], { level: 50, msg: 'reconcile failed', controller: 'test', key: 'a', failures: 3 })
  t.match(logged[2], { err: { message: 'broken' } })
  stop.abort()
  await running
})

t.test('a reconcile that throws before its first await is an error like any other', async (t) => {
  const { clock, queue, stop, results, running } = start(() => {
    throw new Error('at once')
  })
  queue.add('a')
  await clock.advance(0)
  t.match(results, [{ verdict: 'failed' }])
  stop.abort()
  await running
})

t.test('contention is tried again with back-off and is not logged', async (t) => {
  const { clock, queue, stop, logged, results, running } = start(() => Promise.reject(kubeError('Conflict', 409)))
  queue.add('a')
  await clock.advance(16)
  t.strictSame(
    results.map(({ verdict }) => verdict),
    ['contention', 'contention', 'contention'],
  )
  t.strictSame(logged, [])
  stop.abort()
  await running
})

t.test('the wait that an overloaded server asks for is honoured, and is not logged', async (t) => {
  const { clock, queue, stop, logged, results, running } = start(() =>
    Promise.reject(kubeError('TooManyRequests', 429, 2_000)),
  )
  queue.add('a')
  await clock.advance(1_999)
  t.equal(results.length, 1)
  await clock.advance(1)
  t.equal(results.length, 2)
  t.strictSame(logged, [])
  stop.abort()
  await running
})

t.test('as many keys as allowed are reconciled at a time', async (t) => {
  let underWay = 0
  let most = 0
  const { clock, queue, stop, results, running } = start(async () => {
    most = Math.max(most, (underWay += 1))
    await clock.sleep(10)
    underWay -= 1
    return { kind: 'done' }
  }, 3)
  for (let i = 0; i < 10; i += 1) queue.add(`key-${i}`)
  await clock.advance(40)
  t.equal(most, 3)
  t.equal(results.length, 10)
  t.equal(results[0]?.durationMs, 10)
  stop.abort()
  await running
})

t.test('after the signal nothing is taken, and what is under way is waited for', async (t) => {
  const started: string[] = []
  const { clock, queue, stop, results, running } = start(async (key) => {
    started.push(key)
    await clock.sleep(1_000)
    return { kind: 'done' }
  })
  queue.add('a')
  queue.add('b')
  await clock.advance(0)
  let hasEnded = false
  const ended = running.then(() => (hasEnded = true))
  stop.abort()
  await clock.advance(999)
  t.equal(hasEnded, false)
  await clock.advance(1)
  t.equal(hasEnded, true)
  await ended
  t.strictSame(started, ['a'])
  t.match(results, [{ key: 'a', verdict: 'done' }])
  t.equal(queue.depth, 1)
})

t.test('a reconcile cut off by the stop is no error, and its key stays wanted', async (t) => {
  const { clock, queue, stop, logged, results, running } = start(async (_, signal) => {
    await clock.sleep(1_000, signal)
    throw kubeError('Aborted', 0)
  })
  queue.add('a')
  await clock.advance(0)
  stop.abort()
  await running
  t.match(results, [{ verdict: 'stopped' }])
  t.strictSame(logged, [])
  t.equal(queue.depth, 1)
})

t.test('a key added while it is reconciled is reconciled again', async (t) => {
  let runs = 0
  const { clock, queue, stop, running } = start(async () => {
    runs += 1
    await clock.sleep(10)
    return { kind: 'done' }
  }, 2)
  queue.add('a')
  await clock.advance(5)
  queue.add('a')
  await clock.advance(100)
  t.equal(runs, 2)
  stop.abort()
  await running
})
