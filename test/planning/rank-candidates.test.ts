import t from 'tap'
import type { Sandbox } from '../../src/api/kinds.ts'
import { PoolStock } from '../../src/planning/rank-candidates.ts'
import { aSandbox, at } from './claim-fixtures.ts'

const named = (name: string, created: number, nodeName = 'n'): Sandbox => {
  const sandbox = aSandbox({ name, metadata: { creationTimestamp: at(created) } })
  return { ...sandbox, status: { ...sandbox.status, nodeName } }
}
const nameOf = (stock: PoolStock) => {
  const best = stock.best()
  return best.kind === 'candidate' ? best.sandbox.metadata.name : best.kind
}

t.test('Ready comes before outdated, outdated before merely addressed, and those without address never', async (t) => {
  const stock = new PoolStock()
  t.equal(nameOf(stock), 'empty')
  stock.put({ sandbox: named('warming', 0), worth: 'warming' })
  t.equal(nameOf(stock), 'warming')
  for (const worth of ['addressed', 'outdated', 'ready'] as const) {
    stock.put({ sandbox: named(worth, 10), worth })
    t.equal(nameOf(stock), worth)
  }
})

t.test('a candidate that changes its state changes its place', async (t) => {
  const stock = new PoolStock()
  stock.put({ sandbox: named('a', 0), worth: 'warming' })
  stock.put({ sandbox: named('a', 0), worth: 'ready' })
  t.equal(stock.size, 1)
  t.equal(nameOf(stock), 'a')
  stock.put({ sandbox: named('a', 0), worth: 'warming' })
  t.equal(nameOf(stock), 'warming')
  stock.remove('a-uid')
  t.equal(nameOf(stock), 'empty')
})

t.test('the object handed out is the newest that was put in, though its place stays', async (t) => {
  const stock = new PoolStock()
  stock.put({ sandbox: named('a', 0), worth: 'ready' })
  const newer = { ...named('a', 0), metadata: { ...named('a', 0).metadata, resourceVersion: '99' } }
  stock.put({ sandbox: newer, worth: 'ready' })
  t.same(stock.best(), { kind: 'candidate', sandbox: newer })
})

t.test('claims are spread over the nodes', async (t) => {
  const stock = new PoolStock()
  for (const [name, node] of [
    ['a1', 'a'],
    ['a2', 'a'],
    ['b1', 'b'],
    ['b2', 'b'],
  ] as const) {
    stock.put({ sandbox: named(name, 0, node), worth: 'ready' })
  }
  const nodes: string[] = []
  for (let best = stock.best(); best.kind === 'candidate'; best = stock.best()) {
    nodes.push(best.sandbox.status?.nodeName ?? '')
    stock.remove(best.sandbox.metadata.uid ?? '')
  }
  t.not(nodes[0], nodes[1])
  t.equal(nodes.length, 4)
})
