import { getEventListeners } from 'node:events'
import t from 'tap'
import { systemClock } from '../../src/runtime/clock.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'

const dayMs = 24 * 60 * 60_000

interface NodeTimer {
  readonly callback: () => void
  readonly delayMs: number
}

/** Takes the place of Node's timers, which fire at once when a delay does not fit into 31 bits. */
function takeOverTimers(t_: { intercept: typeof t.intercept }): NodeTimer[] {
  const timers: NodeTimer[] = []
  const setTimeout = (callback: () => void, delayMs: number): NodeTimer => {
    const timer = { callback, delayMs }
    timers.push(timer)
    return timer
  }
  const clearTimeout = (timer: NodeTimer): void => {
    if (timers.includes(timer)) timers.splice(timers.indexOf(timer), 1)
  }
  t_.intercept(globalThis, 'setTimeout', { value: setTimeout })
  t_.intercept(globalThis, 'clearTimeout', { value: clearTimeout })
  return timers
}

t.test('a system timer of sixty days is made of delays that Node can keep', (t) => {
  const timers = takeOverTimers(t)
  let runs = 0
  systemClock.setTimer(() => (runs += 1), 60 * dayMs)
  const delays: number[] = []
  for (let timer = timers.shift(); timer !== undefined; timer = timers.shift()) {
    t.equal(runs, 0)
    delays.push(timer.delayMs)
    timer.callback()
  }
  t.equal(runs, 1)
  const fullMs = 2 ** 31 - 1
  t.strictSame(delays, [fullMs, fullMs, 60 * dayMs - 2 * fullMs])
  t.end()
})

t.test('a cancelled system timer does not run, in its first stretch or a later one', (t) => {
  const timers = takeOverTimers(t)
  let runs = 0
  systemClock.setTimer(() => (runs += 1), 10).cancel()
  t.equal(timers.length, 0)
  const long = systemClock.setTimer(() => (runs += 1), 30 * dayMs)
  timers.shift()?.callback()
  t.equal(timers.length, 1)
  long.cancel()
  long.cancel()
  t.equal(timers.length, 0)
  t.equal(runs, 0)
  t.end()
})

t.test('the system clock tells the time, and its monotonic time does not go back', async (t) => {
  t.ok(Math.abs(systemClock.now() - Date.now()) < dayMs)
  const before = systemClock.monotonic()
  await systemClock.sleep(0)
  t.ok(systemClock.monotonic() >= before)
})

t.test('a sleep ends with its signal and leaves no timer', async (t) => {
  const clock = new ManualClock()
  const stop = new AbortController()
  const sleeping = clock.sleep(dayMs, stop.signal)
  t.equal(clock.pendingTimers, 1)
  stop.abort()
  await sleeping
  t.equal(clock.pendingTimers, 0)
  await clock.sleep(dayMs, stop.signal)
  t.equal(clock.pendingTimers, 0)
})

t.test('a sleep that has run its time leaves no listener on its signal', async (t) => {
  const clock = new ManualClock()
  const { signal } = new AbortController()
  const sleeping = clock.sleep(dayMs, signal)
  t.equal(getEventListeners(signal, 'abort').length, 1)
  await clock.advance(dayMs)
  await sleeping
  t.equal(getEventListeners(signal, 'abort').length, 0)
})

t.test('advancing runs timers in the order they are due, those set on the way included', async (t) => {
  const clock = new ManualClock(1_000)
  const ran: [string, number][] = []
  const note = (name: string) => () => ran.push([name, clock.now()])
  clock.setTimer(note('late'), 300)
  clock.setTimer(() => void Promise.resolve().then(() => clock.setTimer(note('nested'), 50)), 100)
  clock.setTimer(note('first of two'), 200)
  clock.setTimer(note('second of two'), 200)
  clock.setTimer(note('too late'), 501)
  clock.setTimer(note('cancelled'), 10).cancel()
  await clock.advance(500)
  t.strictSame(ran, [
    ['nested', 1_150],
    ['first of two', 1_200],
    ['second of two', 1_200],
    ['late', 1_300],
  ])
  t.equal(clock.now(), 1_500)
  t.equal(clock.monotonic(), 500)
})

t.test('two advances at once pass one after the other', async (t) => {
  const clock = new ManualClock()
  const ran: number[] = []
  for (const ms of [50, 150]) clock.setTimer(() => ran.push(clock.monotonic()), ms)
  await Promise.all([clock.advance(100), clock.advance(100)])
  t.strictSame(ran, [50, 150])
  t.equal(clock.monotonic(), 200)
})

t.test('a timer that throws fails the advance it runs in, and no other', async (t) => {
  const clock = new ManualClock()
  clock.setTimer(() => {
    throw new Error('timer')
  }, 10)
  await t.rejects(clock.advance(20), { message: 'timer' })
  await clock.advance(20)
  t.equal(clock.monotonic(), 30)
})

t.test('a jump of the wall clock moves neither timers nor the monotonic time', async (t) => {
  const clock = new ManualClock(1_000)
  let runs = 0
  clock.setTimer(() => (runs += 1), 100)
  clock.jump(dayMs)
  await clock.advance(99)
  t.equal(runs, 0)
  t.equal(clock.now(), 1_099 + dayMs)
  t.equal(clock.monotonic(), 99)
})
