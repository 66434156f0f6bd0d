import { array, assert, integer, nat, property, record } from 'fast-check'
import t from 'tap'
import { ServerClock } from '../../src/kube/server-clock.ts'

const start = Date.UTC(2026, 0, 1)

/** The header of a server whose clock reads `ms`. */
const dateHeader = (ms: number) => new Date(ms).toUTCString()

/** Lets replies be seen that took `roundTripMs`, at these moments after the start, the server's clock `aheadMs` ahead. */
function observe(clock: ServerClock, moments: readonly number[], aheadMs: number, roundTripMs = 2) {
  for (const moment of moments) {
    const sentAt = start + moment
    clock.observe(dateHeader(sentAt + roundTripMs / 2 + aheadMs), sentAt, sentAt + roundTripMs)
  }
}

t.test('the offset is zero until a reply is seen, and after one without a date', (t) => {
  const clock = new ServerClock()
  t.equal(clock.offsetMs(), 0)
  clock.observe(undefined, start, start)
  clock.observe('soon', start, start)
  t.equal(clock.offsetMs(), 0)
  t.end()
})

t.test('clocks that agree show no offset, in whatever part of a second they are read', (t) => {
  for (const moment of [0, 1, 499, 500, 998, 999]) {
    const clock = new ServerClock()
    observe(clock, [moment], 0)
    t.equal(clock.offsetMs(), 0)
  }
  t.end()
})

t.test('one reply tells the offset to half a second, more replies to a round trip', (t) => {
  for (const aheadMs of [-90_000, -1_234, 1_234, 3_600_000]) {
    const clock = new ServerClock()
    observe(clock, [0], aheadMs)
    t.ok(Math.abs(clock.offsetMs() - aheadMs) <= 501, `${clock.offsetMs()}`)
    observe(
      clock,
      Array.from({ length: 500 }, (_, i) => i * 37),
      aheadMs,
    )
    t.ok(Math.abs(clock.offsetMs() - aheadMs) <= 50, `${clock.offsetMs()}`)
  }
  t.end()
})

t.test('a clock that is set is followed', (t) => {
  const clock = new ServerClock()
  observe(clock, [0, 300, 700], 5_000)
  observe(clock, [1_000], -60_000)
  t.ok(Math.abs(clock.offsetMs() + 60_000) <= 501)
  observe(clock, [1_100], 0)
  t.equal(clock.offsetMs(), 0)
  t.end()
})

t.test('a clock that drifts is followed, closer than one reply could tell', (t) => {
  const clock = new ServerClock()
  let worst = 0
  // A reply every two seconds, which is what renewing a lease gives; 50 ppm are four seconds a day.
  for (let moment = 0; moment < 86_400_000; moment += 2_003) {
    const aheadMs = 2_000 + moment * 50e-6
    observe(clock, [moment], aheadMs)
    if (moment > 3_600_000) worst = Math.max(worst, Math.abs(clock.offsetMs() - aheadMs))
  }
  t.ok(worst < 200, `${worst}`)
  t.end()
})

t.test('the estimate is never farther off than what one reply leaves open', (t) => {
  assert(
    property(
      integer({ min: -10_000_000, max: 10_000_000 }),
      array(record({ afterMs: nat(5_000), roundTripMs: nat(200) }), { minLength: 1, maxLength: 50 }),
      (aheadMs, replies) => {
        const clock = new ServerClock()
        let moment = 0
        for (const { afterMs, roundTripMs } of replies) {
          moment += afterMs
          observe(clock, [moment], aheadMs, roundTripMs)
        }
        // Zero is claimed as long as it is possible; it then is at most an interval's length away.
        return Math.abs(clock.offsetMs() - aheadMs) <= 1_000 + 200
      },
    ),
  )
  t.end()
})
