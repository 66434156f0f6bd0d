import t from 'tap'
import { Expectations } from '../../src/runtime/expectations.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'

const expiryMs = 5 * 60_000

t.test('what is expected is pending until it is observed, for each owner apart', (t) => {
  const expectations = new Expectations(new ManualClock())
  expectations.expectCreate('one', 'a')
  expectations.expectCreate('one', 'b')
  expectations.expectDelete('one', 'a')
  expectations.expectCreate('two', 'a')
  expectations.observeCreate('one', 'a')
  t.strictSame([...expectations.pendingCreates('one')], ['b'])
  t.strictSame([...expectations.pendingDeletes('one')], ['a'])
  t.strictSame([...expectations.pendingCreates('two')], ['a'])
  expectations.observeDelete('one', 'a')
  expectations.observeCreate('one', 'b')
  t.strictSame([...expectations.pendingCreates('one'), ...expectations.pendingDeletes('one')], [])
  t.end()
})

t.test('observing what nobody expects is no error', (t) => {
  const expectations = new Expectations(new ManualClock())
  expectations.observeCreate('one', 'a')
  expectations.observeDelete('one', 'a')
  t.equal(expectations.pendingCreates('one').size, 0)
  t.end()
})

t.test('a create that is repeated under its name counts once', (t) => {
  const expectations = new Expectations(new ManualClock())
  expectations.expectCreate('one', 'a')
  expectations.expectCreate('one', 'a')
  t.equal(expectations.pendingCreates('one').size, 1)
  expectations.observeCreate('one', 'a')
  t.equal(expectations.pendingCreates('one').size, 0)
  t.end()
})

t.test('an expired expectation stays pending until it is observed', async (t) => {
  const clock = new ManualClock()
  const expectations = new Expectations(clock)
  expectations.expectCreate('one', 'old')
  expectations.expectDelete('one', 'old-uid')
  await clock.advance(expiryMs)
  expectations.expectCreate('one', 'young')
  t.strictSame(expectations.expired('one', clock.now()), { creates: [], deletes: [] })
  await clock.advance(1)
  t.strictSame(expectations.expired('one', clock.now()), { creates: ['old'], deletes: ['old-uid'] })
  t.strictSame([...expectations.pendingCreates('one')], ['old', 'young'])
  expectations.observeCreate('one', 'old')
  t.strictSame(expectations.expired('one', clock.now()), { creates: [], deletes: ['old-uid'] })
})

t.test('a repeated create expires five minutes after the repetition', async (t) => {
  const clock = new ManualClock()
  const expectations = new Expectations(clock)
  expectations.expectCreate('one', 'a')
  await clock.advance(expiryMs)
  expectations.expectCreate('one', 'a')
  await clock.advance(expiryMs)
  t.strictSame(expectations.expired('one', clock.now()).creates, [])
})

t.test('what an owner expected is forgotten with it', (t) => {
  const expectations = new Expectations(new ManualClock())
  expectations.expectCreate('one', 'a')
  expectations.forgetOwner('one')
  t.equal(expectations.pendingCreates('one').size, 0)
  t.end()
})

t.test('the pending set is a copy', (t) => {
  const expectations = new Expectations(new ManualClock())
  expectations.expectCreate('one', 'a')
  const pending = expectations.pendingCreates('one')
  expectations.observeCreate('one', 'a')
  t.equal(pending.size, 1)
  t.end()
})
