import t from 'tap'
import { parseBehaviour, runAtOnce } from '../../devcluster/behaviour.ts'

t.test('words set only what they name', async (t) => {
  const base = { outcome: 'succeed', startAfterMs: 7, stopAfterMs: 9 } as const
  t.strictSame(parseBehaviour('fail', base), { ...base, outcome: 'fail' })
  t.strictSame(parseBehaviour('delay=250', base), { ...base, startAfterMs: 250 })
  t.strictSame(parseBehaviour('stop-delay=0', base), { ...base, stopAfterMs: 0 })
  t.strictSame(parseBehaviour('delay=1, stop-delay=2,crash-loop', base), {
    outcome: 'crash-loop',
    startAfterMs: 1,
    stopAfterMs: 2,
  })
})

t.test('an unknown word is refused by name, with the choices', async (t) => {
  t.throws(() => parseBehaviour('run,explode', runAtOnce), { name: 'RangeError', message: /explode is none of run,/ })
  t.throws(() => parseBehaviour('delay=soon', runAtOnce), { message: /delay=soon is none of/ })
  t.throws(() => parseBehaviour('', runAtOnce), RangeError)
})
