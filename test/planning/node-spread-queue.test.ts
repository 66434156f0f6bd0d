import fc from 'fast-check'
import t from 'tap'
import { NodeSpreadQueue, type Queued } from '../../src/planning/node-spread-queue.ts'

const member = (uid: string, node: string, createdAt: number): Queued => ({ uid, node, createdAt })

t.test('the node with most members left is served first, and there the oldest', async (t) => {
  const queue = new NodeSpreadQueue<Queued>()
  for (const each of [member('a1', 'a', 5), member('a2', 'a', 3), member('a3', 'a', 4), member('b1', 'b', 1)])
    queue.add(each)
  const served: string[] = []
  for (let next = queue.peek(); next; next = queue.peek()) {
    served.push(next.uid)
    queue.remove(next.uid)
  }
  t.same(served, ['a2', 'a3', 'b1', 'a1'])
})

t.test('equal ages are served by UID', async (t) => {
  const queue = new NodeSpreadQueue<Queued>()
  queue.add(member('y', 'n', 1))
  queue.add(member('x', 'n', 1))
  t.equal(queue.peek()?.uid, 'x')
})

t.test('through any history it serves what a full scan would', async () => {
  const step = fc.record({
    kind: fc.constantFrom('add', 'remove', 'take'),
    uid: fc.integer({ min: 0, max: 12 }).map(String),
    node: fc.constantFrom('a', 'b', 'c', ''),
    createdAt: fc.integer({ min: 0, max: 5 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const queue = new NodeSpreadQueue<Queued>()
      const model = new Map<string, Queued>()
      for (const { kind, ...given } of steps) {
        const uid = kind === 'take' ? (queue.peek()?.uid ?? '') : given.uid
        if (kind === 'add') {
          queue.add({ ...given })
          model.set(uid, given)
        } else if (queue.remove(uid) !== model.delete(uid)) return false
        if (queue.size !== model.size || !isBest(queue.peek(), [...model.values()])) return false
      }
      return true
    }),
  )
})

/** Among nodes that have equally many either may be served. */
function isBest(best: Queued | undefined, all: readonly Queued[]): boolean {
  if (best === undefined) return all.length === 0
  const byNode = Map.groupBy(all, ({ node }) => node)
  const peers = byNode.get(best.node) ?? []
  const most = Math.max(...[...byNode.values()].map((members) => members.length))
  const oldest = peers.toSorted((a, b) => a.createdAt - b.createdAt || (a.uid < b.uid ? -1 : 1))[0]
  return peers.length === most && oldest?.uid === best.uid
}

t.test('members that come and go on one node leave the oldest in front', async (t) => {
  const queue = new NodeSpreadQueue()
  queue.add({ uid: 'stays', node: 'n', createdAt: 500 })
  for (let i = 0; i < 1_000; i++) {
    queue.add({ uid: `u-${i}`, node: 'n', createdAt: 1_000 - i })
    t.ok(queue.remove(`u-${i}`))
  }
  t.equal(queue.peek()?.uid, 'stays')
  t.equal(queue.size, 1)
})
