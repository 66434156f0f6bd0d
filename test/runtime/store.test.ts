import * as fc from 'fast-check'
import t from 'tap'
import { IndexedStore } from '../../src/runtime/store.ts'
import type { Thing } from './scripted-api.ts'

const byDigit = { digit: ({ spec }: Thing) => [...new Set(String(spec.value))] }

function thing(name: string, value: number): Thing {
  return { metadata: { namespace: 'ns', name }, spec: { value } }
}

t.test('set and delete say what changed', (t) => {
  const store = new IndexedStore<Thing>()
  const [first, second] = [thing('a', 1), thing('a', 2)]
  t.strictSame(store.set(first), { kind: 'added', object: first })
  t.strictSame(store.set(second), { kind: 'updated', object: second, previous: first })
  t.strictSame(store.delete('ns/a'), { kind: 'deleted', object: second })
  t.equal(store.delete('ns/a'), undefined)
  t.end()
})

t.test('an index that was never declared is an error, a value that nothing has is not', (t) => {
  const store = new IndexedStore<Thing>(byDigit)
  t.throws(() => store.indexed('digits', '1'), /digits/)
  t.strictSame(store.indexed('digit', '1'), [])
  t.end()
})

t.test('what indexed returned does not change with the store', (t) => {
  const store = new IndexedStore<Thing>(byDigit)
  store.set(thing('a', 1))
  const found = store.indexed('digit', '1')
  store.set(thing('b', 1))
  t.equal(found.length, 1)
  t.end()
})

t.test('an index function that throws changes nothing, if nobody takes the error', (t) => {
  const store = new IndexedStore<Thing>({
    ...byDigit,
    picky: ({ spec }) => {
      if (spec.value > 1) throw new Error('picky')
      return []
    },
  })
  store.set(thing('a', 1))
  t.throws(() => store.set(thing('a', 2)), /picky/)
  t.equal(store.get('ns/a')?.spec.value, 1)
  t.equal(store.indexed('digit', '1').length, 1)
  t.strictSame(store.indexed('digit', '2'), [])
  t.end()
})

t.test('an index always holds what a search through all objects would find', (t) => {
  const name = fc.constantFrom('a', 'b', 'c')
  const write = fc.oneof(fc.record({ name, value: fc.nat(999) }), fc.record({ name }))
  fc.assert(
    fc.property(fc.array(write), (writes) => {
      const store = new IndexedStore<Thing>(byDigit)
      for (const each of writes) {
        if ('value' in each) store.set(thing(each.name, each.value))
        else store.delete(`ns/${each.name}`)
        const all = [...store.values()]
        if (all.length !== store.size) throw new Error('size')
        for (const digit of '0123456789') {
          const found = new Set(store.indexed('digit', digit))
          const expected = new Set(all.filter(({ spec }) => String(spec.value).includes(digit)))
          if (found.symmetricDifference(expected).size > 0) throw new Error(`digit ${digit}`)
        }
      }
    }),
  )
  t.pass('100 histories')
  t.end()
})
