import t from 'tap'
import { ClaimWaiters } from '../../src/controllers/claim-waiters.ts'

t.test('claims are woken in the order they came, each pool by itself', async (t) => {
  const waiters = new ClaimWaiters()
  waiters.join('a', 'one')
  waiters.join('b', 'one')
  waiters.join('c', 'other')
  waiters.join('a', 'one')
  t.equal(waiters.next('one'), 'a', 'to join again costs nobody its place')
  t.equal(waiters.next('one'), 'b')
  t.equal(waiters.next('one'), undefined)
  t.equal(waiters.next('other'), 'c')
  t.equal(waiters.next('unknown'), undefined)
})

t.test('who leaves, or waits for another pool, is not woken by the first', async (t) => {
  const waiters = new ClaimWaiters()
  waiters.join('a', 'one')
  waiters.join('b', 'one')
  waiters.leave('a')
  waiters.leave('stranger')
  waiters.join('b', 'other')
  t.equal(waiters.next('one'), undefined)
  t.equal(waiters.next('other'), 'b')
  waiters.join('c', 'one')
  waiters.clear()
  t.equal(waiters.next('one'), undefined)
})
