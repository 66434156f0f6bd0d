import { pino } from 'pino'
import t from 'tap'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createReflector } from '../../src/runtime/reflector.ts'
import { describe, start } from './reflector-harness.ts'
import { kubeError, ScriptedApi, things } from './scripted-api.ts'

t.test('the list is read in pages and the watch begins at its version, in the same scope', async (t) => {
  const api = new ScriptedApi()
  api.pageSize = 2
  for (const name of ['a', 'b', 'c', 'd', 'e']) api.put(name)
  const { informer } = await start(t, api)
  t.equal(informer.store.size, 5)
  t.strictSame(
    api.lists.map(({ limit, continue: token }) => [limit, token]),
    [
      [500, undefined],
      [500, '105,2'],
      [500, '105,4'],
    ],
  )
  t.equal(api.lists[0]?.resourceVersion, undefined, 'a quorum read')
  t.match(api.lastWatch.options, { resourceVersion: '105', namespace: 'ns', labelSelector: 'a=b', timeoutSeconds: 300 })
})

t.test('a snapshot that is compacted between two pages is listed again whole', async (t) => {
  const api = new ScriptedApi()
  api.pageSize = 2
  for (const name of ['a', 'b', 'c']) api.put(name)
  api.beforeList = (options) => {
    if (options.continue === undefined) return
    api.pageSize = Infinity
    api.put('d')
    api.compact()
  }
  const { informer, restarts } = await start(t, api)
  t.equal(informer.store.size, 4)
  t.strictSame(
    api.lists.map(({ limit, continue: token }) => [limit, token]),
    [
      [500, undefined],
      [500, '103,2'],
      [undefined, undefined],
    ],
  )
  t.equal(api.lastWatch.options.resourceVersion, '104')
  t.strictSame(restarts, [])
})

t.test('an error between two pages that is not 410 begins the list again, in pages', async (t) => {
  const api = new ScriptedApi()
  api.pageSize = 2
  for (const name of ['a', 'b', 'c']) api.put(name)
  api.beforeList = () => {
    if (api.lists.length === 2) api.listFaults.push(kubeError('ServerError', 500))
  }
  const { informer, clock, restarts } = await start(t, api)
  t.equal(informer.hasSynced, false)
  await clock.advance(1_000)
  t.equal(informer.store.size, 3)
  t.strictSame(
    api.lists.map(({ limit, continue: token }) => [limit, token]),
    [
      [500, undefined],
      [500, '103,2'],
      [500, undefined],
      [500, '103,2'],
    ],
  )
  t.strictSame(restarts, ['server-error'])
})

t.test('synced resolves only after the first full list and its handlers', async (t) => {
  const api = new ScriptedApi()
  api.put('a')
  const gate = Promise.withResolvers<void>()
  api.beforeList = () => gate.promise
  const { informer, changes, clock } = await start(t, api)
  let seen: readonly string[] | undefined
  void informer.synced.then(() => (seen = [...changes]))
  await clock.advance(10_000)
  t.equal(seen, undefined)
  t.equal(informer.hasSynced, false)
  gate.resolve()
  await clock.advance(0)
  t.strictSame(seen, ['added a uid-1 0'])
  t.equal(informer.hasSynced, true)
})

t.test('the store and its indexes are updated before a handler runs', async (t) => {
  const { api, informer, clock } = await start(t)
  const seen: unknown[] = []
  informer.onChange((change) => {
    const { kind, object } = change
    const inIndex = (value: number) => informer.store.indexed('value', String(value)).includes(object)
    seen.push([kind, informer.store.get('ns/a') === object, inIndex(1), inIndex(2)])
  })
  api.put('a', 1)
  api.put('a', 2)
  api.remove('a')
  await clock.advance(0)
  t.strictSame(seen, [
    ['added', true, true, false],
    ['updated', true, false, true],
    ['deleted', false, false, false],
  ])
})

t.test('an exception in a handler is counted, and neither other handlers nor later events suffer', async (t) => {
  const { api, informer, changes, clock, handlerErrors, restarts } = await start(t)
  informer.onChange(() => {
    throw new Error('handler')
  })
  const after: string[] = []
  informer.onChange((change) => after.push(describe(change)))
  api.put('a')
  api.put('b')
  await clock.advance(0)
  t.equal(handlerErrors(), 2)
  t.strictSame(changes, ['added a uid-1 0', 'added b uid-2 0'])
  t.strictSame(after, changes)
  t.strictSame(restarts, [])
})

t.test('a handler that is registered late is told of what is there', async (t) => {
  const { api, informer, clock } = await start(t)
  api.put('a')
  await clock.advance(0)
  const late: string[] = []
  informer.onChange((change) => late.push(describe(change)))
  t.strictSame(late, ['added a uid-1 0'])
})

t.test('managedFields are dropped and cached objects are frozen to the bottom', async (t) => {
  const api = new ScriptedApi()
  api.put('listed')
  const { informer, clock } = await start(t, api)
  api.put('watched')
  await clock.advance(0)
  for (const name of ['listed', 'watched']) {
    const thing = informer.store.get(`ns/${name}`)
    t.ok(thing)
    t.notOk(thing && 'managedFields' in thing.metadata)
    t.throws(() => thing && (thing.spec.value = 7), TypeError)
  }
})

t.test('an index function that throws leaves the object in the store and out of the index', async (t) => {
  const api = new ScriptedApi()
  let errors = 0
  const informer = createReflector({
    client: api,
    resource: things,
    clock: new ManualClock(),
    log: pino({ level: 'silent' }),
    indexes: {
      bad: () => {
        throw new Error('index')
      },
    },
    onHandlerError: () => (errors += 1),
  })
  api.put('a')
  const stop = new AbortController()
  const running = informer.run(stop.signal)
  await informer.synced
  t.equal(informer.store.size, 1)
  t.strictSame(informer.store.indexed('bad', 'x'), [])
  t.equal(errors, 1)
  stop.abort()
  await running
})
