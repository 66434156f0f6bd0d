import fc from 'fast-check'
import t from 'tap'
import { quantityForm } from '../../src/planning/quantity.ts'
import { semanticForm } from '../../src/planning/semantic-form.ts'

const isSame = (a: unknown, b: unknown) => semanticForm(a) === semanticForm(b)

t.test('quantities compare by value', async (t) => {
  const equal: (string | number)[][] = [
    ['1', '1000m', 1, '1.0', '1e0', '0.001k', '+1', '1.'],
    ['1Gi', '1024Mi', '1073741824'],
    ['1k', '1000', '1E3', '.001M'],
    ['0.5', '500m', '500000u', '500000000n'],
    ['0', '0Gi', '-0', 0],
    ['1n', '0.1n', '0.5n'],
  ]
  for (const group of equal) t.same(new Set(group.map(quantityForm)).size, 1, group.join(' = '))
  const firsts = equal.map(([first]) => quantityForm(first!))
  t.equal(new Set(firsts).size, firsts.length)
  t.not(quantityForm('-1'), quantityForm('1'))
  t.not(quantityForm('1M'), quantityForm('1Mi'))
})

t.test('what is no quantity stays the text it is', async (t) => {
  for (const text of ['', 'plenty', '1.2.3', '1x', '.', '1e999']) t.equal(quantityForm(text), text)
})

t.test('whole milli-units read the same in units', async (t) => {
  fc.assert(fc.property(fc.integer(), (n) => quantityForm(`${n}000m`) === quantityForm(n)))
  t.pass()
})

t.test('nil equals empty, and absent', async (t) => {
  const pod = { containers: [{ name: 'main' }] }
  for (const empty of [null, undefined, [], {}]) {
    t.ok(isSame(pod, { ...pod, volumes: empty }), JSON.stringify(empty))
    t.ok(isSame(pod, { containers: [{ name: 'main', securityContext: { capabilities: empty } }] }))
  }
})

t.test('an empty value that was set is no absent one', async (t) => {
  for (const set of [false, 0, '']) t.notOk(isSame({}, { field: set }), JSON.stringify(set))
})

t.test('a selector that selects everything is not one that selects nothing', async (t) => {
  for (const field of ['labelSelector', 'namespaceSelector', 'selector']) t.notOk(isSame({}, { [field]: {} }), field)
  t.ok(isSame({ labelSelector: {} }, { labelSelector: { matchLabels: {} } }))
})

t.test('resources are told by value wherever they stand, other text is not', async (t) => {
  const limits = (cpu: unknown) => ({ containers: [{ resources: { limits: { cpu }, requests: { cpu } } }] })
  t.ok(isSame(limits('1'), limits('1000m')))
  t.ok(isSame(limits(1), limits('1')))
  t.notOk(isSame(limits('1'), limits('2')))
  t.ok(isSame({ emptyDir: { sizeLimit: '1Gi' } }, { emptyDir: { sizeLimit: '1024Mi' } }))
  t.ok(isSame({ resourceFieldRef: { divisor: '1' } }, { resourceFieldRef: { divisor: '1000m' } }))
  t.ok(isSame({ overhead: { cpu: '1' } }, { overhead: { cpu: '1000m' } }))
  t.notOk(isSame({ env: [{ value: '1' }] }, { env: [{ value: '1000m' }] }))
  t.notOk(isSame({ labels: { sizeLimit: '1' } }, { labels: { sizeLimit: '1000m' } }))
})

t.test('lists compare by position, maps do not', async (t) => {
  t.notOk(isSame([{ name: 'a' }, { name: 'b' }], [{ name: 'b' }, { name: 'a' }]))
  t.notOk(isSame([{}, 'a'], ['a']))
  t.ok(isSame({ a: 1, b: 2 }, { b: 2, a: 1 }))
})

t.test('the form of any JSON is JSON again, and depends on nothing but the value', async (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      JSON.parse(semanticForm(value))
      return semanticForm(value) === semanticForm(structuredClone(value))
    }),
  )
  t.pass()
})
