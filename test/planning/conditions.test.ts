import t from 'tap'
import { findCondition, setCondition } from '../../src/planning/conditions.ts'

const now = Date.UTC(2026, 0, 1, 12)
const later = now + 60_000
const ready = {
  type: 'Ready',
  status: 'False',
  reason: 'Waiting',
  message: 'For a Pod.',
  observedGeneration: 1,
} as const

t.test('a new condition is added with the time, in whole seconds as Kubernetes writes it', async (t) => {
  t.same(setCondition(undefined, ready, now + 5), [{ ...ready, lastTransitionTime: '2026-01-01T12:00:00Z' }])
})

t.test('nothing new returns the very same list', async (t) => {
  const list = setCondition(undefined, ready, now)
  t.equal(setCondition(list, ready, later), list)
})

t.test('the transition time moves only with the status', async (t) => {
  const list = setCondition(undefined, ready, now)
  const reworded = setCondition(list, { ...ready, reason: 'Other' }, later)
  t.match(reworded, [{ reason: 'Other', lastTransitionTime: '2026-01-01T12:00:00Z' }])
  const flipped = setCondition(reworded, { ...ready, status: 'True' }, later)
  t.match(flipped, [{ status: 'True', lastTransitionTime: '2026-01-01T12:01:00Z' }])
})

t.test('message and observed generation count as news', async (t) => {
  const list = setCondition(undefined, ready, now)
  t.not(setCondition(list, { ...ready, message: 'Other.' }, now), list)
  t.match(setCondition(list, { ...ready, observedGeneration: 2 }, later), [
    { observedGeneration: 2, lastTransitionTime: '2026-01-01T12:00:00Z' },
  ])
})

t.test('other conditions are handed on as they are, in their place', async (t) => {
  const list = setCondition(setCondition(undefined, ready, now), { ...ready, type: 'Finished' }, now)
  const next = setCondition(list, { ...ready, status: 'True' }, later)
  t.equal(next[1], list[1])
  t.equal(findCondition(next, 'Finished'), list[1])
  t.equal(findCondition(undefined, 'Finished'), undefined)
})

t.test('a condition without observed generation has no such field', async (t) => {
  const { observedGeneration: _none, ...bare } = ready
  t.notOk('observedGeneration' in setCondition(undefined, bare, now)[0]!)
})
