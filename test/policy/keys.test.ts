import t from 'tap'
import { isReserved, isRouterLabel, keyChanges, matchesEntry } from '../../src/policy/keys.ts'
import { isDnsLabel, isLabelValue, isMetadataKey } from '../../src/policy/names.ts'

t.test('reserved are our domains and their subdomains, in any case, and no others', async (t) => {
  for (const key of [
    'agents.x-k8s.io/a',
    'extensions.agents.x-k8s.io/a',
    'agents.kruise.io/a',
    'sandgate.dev/a',
    'Sandgate.DEV/a',
    'x.sandgate.dev/a',
  ])
    t.ok(isReserved(key), key)
  for (const key of ['a', 'example.com/sandgate.dev', 'notsandgate.dev/a', 'sandgate.dev', 'x-k8s.io/a'])
    t.notOk(isReserved(key), key)
})

t.test('an entry is a domain, the beginning of a key, or a whole key', async (t) => {
  t.ok(matchesEntry('sidecar.istio.io/inject', 'istio.io'))
  t.ok(matchesEntry('istio.io/rev', 'istio.io'))
  t.ok(matchesEntry('IO.katacontainers.config', 'io.katacontainers.*'))
  t.ok(matchesEntry('aadpodidbinding', 'aadpodidbinding'))
  t.notOk(matchesEntry('xistio.io/inject', 'istio.io'))
  t.notOk(matchesEntry('example.com/istio.io', 'istio.io'))
})

t.test('the router label is known in any case and with blanks', async (t) => {
  t.ok(isRouterLabel('APP', ' Sandbox-Router '))
  t.notOk(isRouterLabel('app', 'sandbox-router-2'))
  t.notOk(isRouterLabel('application', 'sandbox-router'))
})

t.test('changes are told by how, in the order of the keys', async (t) => {
  t.same(keyChanges({ c: '1', b: '1', same: '1' }, { a: '1', b: '2', same: '1' }), [
    { key: 'a', how: 'added' },
    { key: 'b', how: 'changed' },
    { key: 'c', how: 'removed' },
  ])
  t.same(keyChanges(undefined, undefined), [])
})

t.test('names are judged as the API server judges them', async (t) => {
  for (const name of ['a', '7', 'a-b', 'a'.repeat(63)]) t.ok(isDnsLabel(name), name)
  for (const name of ['', '-a', 'a-', 'A', 'a.b', 'a'.repeat(64), 'a\n']) t.notOk(isDnsLabel(name), name)
  for (const key of ['a', 'A_b.c', 'example.com/a', 'Example.com/a', 'a'.repeat(63)]) t.ok(isMetadataKey(key), key)
  for (const key of ['', '/a', 'a/', 'a/b/c', 'example..com/a', 'a b', 'a'.repeat(64), `${'a.'.repeat(127)}a/x`])
    t.notOk(isMetadataKey(key), key)
  for (const value of ['', 'a', 'A_b.c-d']) t.ok(isLabelValue(value), value)
  for (const value of ['-', 'a b', 'a'.repeat(64)]) t.notOk(isLabelValue(value), value)
})
