import * as fc from 'fast-check'
import t from 'tap'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { WorkQueue } from '../../src/runtime/work-queue.ts'

const never = new AbortController().signal

/** A queue without jitter, so that back-off doubles exactly. */
function create() {
  const clock = new ManualClock()
  return { clock, queue: new WorkQueue({ clock, random: () => 0 }) }
}

t.test('keys are taken in the order they were added, each once', async (t) => {
  const { queue } = create()
  for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key)
  t.equal(queue.depth, 3)
  t.strictSame([await queue.take(never), await queue.take(never), await queue.take(never)], ['a', 'b', 'c'])
  t.equal(queue.depth, 0)
})

t.test('a key added while it is worked on is ready again when that is done, and not before', async (t) => {
  const { queue } = create()
  queue.add('a')
  await queue.take(never)
  queue.add('a')
  queue.add('a')
  t.equal(queue.depth, 0)
  queue.done('a')
  t.equal(queue.depth, 1)
  t.equal(await queue.take(never), 'a')
  queue.done('a')
  t.equal(queue.depth, 0)
})

t.test('those who wait are served in order, each with another key', async (t) => {
  const { queue } = create()
  const taken = [queue.take(never), queue.take(never), queue.take(never)]
  for (const key of ['a', 'b', 'a', 'c']) queue.add(key)
  t.strictSame(await Promise.all(taken), ['a', 'b', 'c'])
})

t.test('whoever waits when the signal ends gets nothing, and takes no key away', async (t) => {
  const { queue } = create()
  const stop = new AbortController()
  const waiting = queue.take(stop.signal)
  stop.abort()
  t.equal(await waiting, undefined)
  queue.add('a')
  t.equal(await queue.take(stop.signal), undefined)
  t.equal(queue.depth, 1)
})

t.test('a delayed key is ready when its time has come', async (t) => {
  const { queue, clock } = create()
  queue.addAfter('a', 1_000)
  await clock.advance(999)
  t.equal(queue.depth, 0)
  await clock.advance(1)
  t.equal(queue.depth, 1)
})

t.test('of several delays for a key the earliest wins, and only it', async (t) => {
  const { queue, clock } = create()
  queue.addAfter('a', 5_000)
  queue.addAfter('a', 1_000)
  queue.addAfter('a', 3_000)
  t.equal(queue.delayed, 1)
  t.equal(clock.pendingTimers, 1)
  await clock.advance(1_000)
  t.equal(await queue.take(never), 'a')
  queue.done('a')
  await clock.advance(10_000)
  t.equal(queue.depth, 0)
})

t.test('no delay means now', (t) => {
  const { queue } = create()
  queue.addAfter('a', 0)
  queue.addAfter('b', -5)
  t.equal(queue.depth, 2)
  t.end()
})

t.test('ten thousand delayed keys need one timer', async (t) => {
  const { queue, clock } = create()
  for (let i = 0; i < 10_000; i += 1) queue.addAfter(`key-${i}`, ((i * 7_919) % 10_000) + 1)
  t.equal(clock.pendingTimers, 1)
  await clock.advance(5_000)
  t.equal(queue.depth, 5_000)
  t.equal(clock.pendingTimers, 1)
  await clock.advance(5_000)
  t.equal(queue.depth, 10_000)
  t.equal(clock.pendingTimers, 0)
})

t.test('back-off doubles from 5 ms to a minute for each key, until it is forgotten', async (t) => {
  const { queue, clock } = create()
  const delay = async (key: string): Promise<number> => {
    const startedMs = clock.monotonic()
    queue.addRateLimited(key)
    while (queue.depth === 0) await clock.advance(5)
    await queue.take(never)
    queue.done(key)
    return clock.monotonic() - startedMs
  }
  const delays: number[] = []
  while (delays.length < 16) delays.push(await delay('a'))
  t.strictSame(delays.slice(0, 5), [5, 10, 20, 40, 80])
  t.strictSame(delays.slice(-3), [40_960, 60_000, 60_000])
  t.equal(await delay('b'), 5)
  queue.forget('a')
  t.equal(await delay('a'), 5)
})

t.test('jitter takes up to half of the back-off away', async (t) => {
  const clock = new ManualClock()
  const queue = new WorkQueue({ clock, random: () => 0.999 })
  queue.addRateLimited('a')
  await clock.advance(2.6)
  t.equal(queue.depth, 1)
})

t.test('the hooks tell depth, waiting time and retries', async (t) => {
  const clock = new ManualClock()
  const told: [string, number?][] = []
  const hooks = {
    onDepth: (depth: number) => told.push(['depth', depth]),
    onTaken: (waitedMs: number) => told.push(['taken', waitedMs]),
    onRetry: () => told.push(['retry']),
  }
  const queue = new WorkQueue({ clock, hooks, random: () => 0 })
  queue.add('a')
  await clock.advance(30)
  await queue.take(never)
  queue.addRateLimited('a')
  await clock.advance(5)
  await clock.advance(10)
  queue.done('a')
  await clock.advance(7)
  await queue.take(never)
  t.strictSame(told, [['depth', 1], ['taken', 30], ['depth', 0], ['retry'], ['depth', 1], ['taken', 17], ['depth', 0]])
})

const anyKey = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const anyStep = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), key: anyKey }) },
  fc.record({ do: fc.constant('addAfter' as const), key: anyKey, ms: fc.nat(50) }),
  fc.record({ do: fc.constant('addRateLimited' as const), key: anyKey }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(20) }) },
)

t.test('however keys come in, none is worked on twice at a time and none is lost', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep), fc.array(fc.nat(30), { minLength: 1 }), async (steps, workMs) => {
      const { queue, clock } = create()
      const stop = new AbortController()
      const working = new Set<string>()
      /** Keys that were added since work on them last began. */
      const owed = new Set<string>()
      let jobs = 0
      const worker = async (): Promise<void> => {
        for (let key = await queue.take(stop.signal); key !== undefined; key = await queue.take(stop.signal)) {
          if (working.has(key)) throw new Error(`${key} is worked on twice`)
          working.add(key)
          owed.delete(key)
          await clock.sleep(workMs[(jobs += 1) % workMs.length] ?? 0)
          working.delete(key)
          queue.done(key)
        }
      }
      const workers = Promise.all([worker(), worker(), worker()])
      for (const step of steps) {
        if (step.do === 'pass') await clock.advance(step.ms)
        else {
          owed.add(step.key)
          if (step.do === 'addAfter') queue.addAfter(step.key, step.ms)
          else queue[step.do](step.key)
        }
      }
      await clock.advance(1_000_000)
      stop.abort()
      await workers
      if (owed.size > 0) throw new Error(`lost ${[...owed].join()}`)
      if (queue.depth + queue.delayed > 0) throw new Error('something was left over')
    }),
  )
  t.pass('100 histories')
})
