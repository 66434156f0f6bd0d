import t from 'tap'
import { durationMs, durationPattern } from '../../src/config/duration.ts'
import { nearest } from '../../src/config/nearest.ts'

t.test('durations add their parts up', async (t) => {
  t.equal(durationMs('90s'), 90_000)
  t.equal(durationMs('1h30m'), 5_400_000)
  t.equal(durationMs('7d1s'), 604_801_000)
})

t.test('a duration has at least one part, largest first', async (t) => {
  const pattern = new RegExp(durationPattern)
  for (const text of ['1s', '0s', '1d2h3m4s']) t.ok(pattern.test(text), text)
  for (const text of ['', '1', 's', '1m1h', '-1s', '1.5h', '1 h']) t.notOk(pattern.test(text), text)
})

t.test('the nearest word takes the fewest edits, in any case', async (t) => {
  t.equal(nearest('maxreplica', ['maxBatch', 'maxReplicas']), 'maxReplicas')
  t.equal(nearest('of', ['enforce', 'warn', 'audit', 'off']), 'off')
  t.equal(nearest('', ['a']), 'a')
})

t.test('nothing is suggested when nothing is near', async (t) => {
  t.equal(nearest('zebra', ['enforce', 'warn']), undefined)
  t.equal(nearest('x', []), undefined)
})
