import t from 'tap'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { goDurationMs, OutOfTime, startDeadline } from '../../webhooks/deadline.ts'

t.test('Go durations are read, and nothing else is', async (t) => {
  const rows: [unknown, number | undefined][] = [
    ['5s', 5000],
    ['500ms', 500],
    ['1m30s', 90_000],
    ['1.5s', 1500],
    ['1h', 3_600_000],
    ['5', undefined],
    ['', undefined],
    ['-1s', undefined],
    ['1d', undefined],
    [['1s', '2s'], undefined],
    [undefined, undefined],
  ]
  for (const [text, ms] of rows) t.equal(goDurationMs(text), ms, String(text))
})

t.test('work that ends in time settles as it does, and leaves no timer behind', async (t) => {
  const clock = new ManualClock()
  const deadline = startDeadline(clock, 1000)
  t.equal(await deadline.limit(async () => 7), 7)
  await t.rejects(
    deadline.limit(async () => {
      throw new Error('no')
    }),
    /no/,
  )
  t.equal(clock.pendingTimers, 0)
})

t.test('slow work is given up and told so, and the time is shared by what comes after', async (t) => {
  const clock = new ManualClock()
  const deadline = startDeadline(clock, 1000)
  let told: AbortSignal | undefined
  const hang = (signal: AbortSignal) => {
    told = signal
    return new Promise<never>(() => undefined)
  }
  await clock.advance(600)
  const slow = t.rejects(deadline.limit(hang), OutOfTime)
  await clock.advance(399)
  t.equal(told?.aborted, false)
  await clock.advance(1)
  await slow
  t.equal(told?.aborted, true)
  const late = t.rejects(deadline.limit(hang), OutOfTime)
  await clock.advance(0)
  await late
})

t.test('a server that waits for less gets its answer within half of that', async (t) => {
  for (const [timeoutMs, expectedMs] of [
    [1000, 500],
    [30_000, 1000],
  ] as const) {
    const clock = new ManualClock()
    const slow = t.rejects(
      startDeadline(clock, 1000, timeoutMs).limit(() => new Promise<never>(() => undefined)),
      OutOfTime,
    )
    await clock.advance(expectedMs - 1)
    t.equal(clock.pendingTimers, 1)
    await clock.advance(1)
    await slow
  }
})
