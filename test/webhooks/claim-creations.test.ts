import t from 'tap'
import { ClaimCreations } from '../../webhooks/claim-creations.ts'

t.test('a creation counts for a minute', async (t) => {
  const creations = new ClaimCreations()
  creations.record('alice', 0)
  creations.record('alice', 10_000)
  t.equal(creations.lastMinute('alice', 59_999), 2)
  t.equal(creations.lastMinute('alice', 60_000), 1)
  t.equal(creations.lastMinute('bob', 10_000), 0)
})

t.test('of very many users those quiet for longest are forgotten', async (t) => {
  const creations = new ClaimCreations()
  creations.record('first', 0)
  creations.record('second', 0)
  for (let i = 0; i < 9_998; i++) creations.record(`u${i}`, 1)
  creations.record('first', 2)
  creations.record('new', 3)
  t.equal(creations.lastMinute('first', 3), 2)
  t.equal(creations.lastMinute('second', 3), 0)
})
