import { pino } from 'pino'
import t from 'tap'
import type { KubeErrorCode } from '../../src/kube/errors.ts'
import type { Change } from '../../src/runtime/informer.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createReflector } from '../../src/runtime/reflector.ts'
import type { RestartReason } from '../../src/runtime/restart-reason.ts'
import { kubeError, ScriptedApi, type Thing, things } from './scripted-api.ts'

const minuteMs = 60_000

/** A reflector against a scripted API, stopped when the test ends. */
async function start(t_: { teardown(fn: () => Promise<void>): void }, api = new ScriptedApi(), jitter = 0) {
  const clock = new ManualClock()
  const stop = new AbortController()
  const restarts: RestartReason[] = []
  const changes: string[] = []
  let handlerErrors = 0
  const informer = createReflector({
    client: api,
    resource: things,
    namespace: 'ns',
    labelSelector: 'a=b',
    indexes: { value: (thing) => [String(thing.spec.value)] },
    clock,
    log: pino({ level: 'silent' }),
    onRestart: (reason) => restarts.push(reason),
    onHandlerError: () => (handlerErrors += 1),
    random: () => jitter,
    freeze: true,
  })
  informer.onChange((change) => changes.push(describe(change)))
  const running = informer.run(stop.signal)
  const end = async (): Promise<void> => {
    stop.abort()
    await running
  }
  t_.teardown(end)
  await clock.advance(0)
  return { api, clock, informer, restarts, changes, end, handlerErrors: () => handlerErrors }
}

function describe(change: Change<Thing>): string {
  const { metadata, spec } = change.object
  const from = change.kind === 'updated' ? `${change.previous.spec.value}→` : ''
  return `${change.kind} ${metadata.name} ${metadata.uid} ${from}${spec.value}`
}

/** How many watches were opened while `ms` passed. */
async function watchesOpened({ api, clock }: { api: ScriptedApi; clock: ManualClock }, ms: number): Promise<number> {
  const before = api.watches.length
  await clock.advance(ms)
  return api.watches.length - before
}

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

t.test('after a closed watch it continues from the last event, without a list', async (t) => {
  const harness = await start(t)
  const { api, clock, changes, restarts } = harness
  api.put('a')
  await clock.advance(minuteMs)
  api.lastWatch.close()
  await clock.advance(0)
  t.equal(api.watches.length, 2, 'at once, since the watch was healthy')
  t.equal(api.lastWatch.options.resourceVersion, '101')
  api.put('b')
  await clock.advance(0)
  t.strictSame(changes, ['added a uid-1 0', 'added b uid-2 0'])
  t.equal(api.lists.length, 1)
  t.strictSame(restarts, ['closed'])
})

t.test('a bookmark moves the version that a later watch continues from', async (t) => {
  const { api, clock } = await start(t)
  api.remove(api.put('elsewhere').metadata.name ?? '')
  api.bookmark()
  await clock.advance(minuteMs)
  const { version } = api
  api.compact()
  api.lastWatch.close()
  await clock.advance(minuteMs)
  t.equal(api.lastWatch.options.resourceVersion, version)
  t.equal(api.lists.length, 1)
})

const interruptions: { code: KubeErrorCode; status: number; reason: RestartReason }[] = [
  { code: 'OutcomeUnknown', status: 0, reason: 'connection' },
  { code: 'Unreachable', status: 0, reason: 'connection' },
  { code: 'Unauthorized', status: 401, reason: 'unauthorized' },
  { code: 'ServerError', status: 500, reason: 'server-error' },
  { code: 'TooManyRequests', status: 429, reason: 'throttled' },
  { code: 'Forbidden', status: 403, reason: 'other' },
]
for (const { code, status, reason } of interruptions) {
  t.test(`${code} on opening a watch is survived, without a list`, async (t) => {
    const { api, clock, changes, restarts } = await start(t)
    api.watchFaults.push(kubeError(code, status), kubeError(code, status))
    api.lastWatch.close()
    api.put('a')
    await clock.advance(minuteMs)
    t.strictSame(changes, ['added a uid-1 0'])
    t.strictSame(restarts, ['closed', reason, reason])
    t.equal(api.lists.length, 1)
  })

  t.test(`${code} in the midst of a watch is survived, without a list`, async (t) => {
    const { api, clock, changes, restarts } = await start(t)
    api.lastWatch.break(kubeError(code, status))
    api.put('a')
    await clock.advance(minuteMs)
    t.strictSame(changes, ['added a uid-1 0'])
    t.strictSame(restarts, [reason])
    t.equal(api.lists.length, 1)
  })

  t.test(`${code} on the first lists is survived`, async (t) => {
    const api = new ScriptedApi()
    api.put('a')
    api.listFaults.push(kubeError(code, status), kubeError(code, status))
    const { informer, clock, restarts } = await start(t, api)
    t.equal(informer.hasSynced, false)
    await clock.advance(minuteMs)
    t.equal(informer.hasSynced, true)
    t.equal(informer.store.size, 1)
    t.strictSame(restarts, [reason, reason])
  })
}

t.test('an error that is no KubeError is survived too', async (t) => {
  const { api, clock, changes, restarts } = await start(t)
  api.lastWatch.break(new TypeError('terminated'))
  api.put('a')
  await clock.advance(minuteMs)
  t.strictSame(changes, ['added a uid-1 0'])
  t.strictSame(restarts, ['other'])
})

t.test('the wait that a 429 asks for is kept to, on a watch and on a list', async (t) => {
  const api = new ScriptedApi()
  api.listFaults.push(kubeError('TooManyRequests', 429, 20_000))
  const { clock } = await start(t, api)
  await clock.advance(19_999)
  t.equal(api.lists.length, 1)
  await clock.advance(1_000)
  t.equal(api.lists.length, 2)
  api.lastWatch.break(kubeError('TooManyRequests', 429, 30_000))
  t.equal(await watchesOpened({ api, clock }, 29_999), 0)
  t.equal(await watchesOpened({ api, clock }, 2_000), 1)
})

t.test('back-off is jittered', async (t) => {
  const delays = [0, 0.9].map(async (jitter) => {
    const harness = await start(t, new ScriptedApi(), jitter)
    harness.api.lastWatch.break(kubeError('ServerError', 500))
    return watchesOpened(harness, 150)
  })
  t.strictSame(await Promise.all(delays), [0, 1])
})

t.test('an ERROR event that is not 410 is survived from the last version, without a list', async (t) => {
  const { api, clock, changes, restarts } = await start(t)
  api.put('a')
  api.lastWatch.send({ type: 'ERROR', object: { code: 500, reason: 'InternalError', message: 'etcd' } })
  await clock.advance(minuteMs)
  t.equal(api.lastWatch.options.resourceVersion, '101')
  api.put('b')
  await clock.advance(0)
  t.strictSame(changes, ['added a uid-1 0', 'added b uid-2 0'])
  t.strictSame(restarts, ['error-event'])
  t.equal(api.lists.length, 1)
})

for (const [how, expire] of [
  ['a 410 reply', (api: ScriptedApi) => api.lastWatch.close()],
  ['an ERROR event with code 410', (api: ScriptedApi) => api.lastWatch.send({ type: 'ERROR', object: { code: 410 } })],
  [
    'an ERROR event with reason Expired',
    (api: ScriptedApi) => api.lastWatch.send({ type: 'ERROR', object: { reason: 'Expired' } }),
  ],
] as const) {
  t.test(`after ${how} it lists, and reports what vanished, changed, and was made anew`, async (t) => {
    const api = new ScriptedApi()
    for (const name of ['kept', 'changed', 'recreated', 'gone']) api.put(name)
    const { clock, informer, changes, restarts } = await start(t, api)
    changes.length = 0
    const watch = api.lastWatch
    watch.send = () => {} // The watch lags behind what follows.
    api.put('changed', 1)
    api.remove('recreated')
    api.put('recreated', 2)
    api.remove('gone')
    api.put('new')
    api.compact()
    delete (watch as Partial<typeof watch>).send
    expire(api)
    await clock.advance(minuteMs)
    t.strictSame(changes, [
      'deleted gone uid-4 0',
      'updated changed uid-2 0→1',
      'deleted recreated uid-3 0',
      'added recreated uid-5 2',
      'added new uid-6 0',
    ])
    t.equal(informer.store.size, 4)
    t.equal(restarts.at(-1), 'expired')
    t.equal(api.lists.length, 2)
    t.equal(api.openWatches.length, 1)
  })
}

t.test('an object that comes with another UID in a watch is reported as deleted, then added', async (t) => {
  const { api, clock, changes } = await start(t)
  const a = api.put('a')
  const metadata = { ...a.metadata, uid: 'other', resourceVersion: '105' }
  api.lastWatch.send({ type: 'MODIFIED', object: { metadata, spec: { value: 9 } } })
  await clock.advance(0)
  t.strictSame(changes, ['added a uid-1 0', 'deleted a uid-1 0', 'added a other 9'])
})

t.test('the delete of a successor that was never seen is reported for the object that was', async (t) => {
  const { api, clock, changes, informer } = await start(t)
  const a = api.put('a', 1)
  const metadata = { ...a.metadata, uid: 'other', resourceVersion: '105' }
  api.lastWatch.send({ type: 'DELETED', object: { metadata, spec: { value: 9 } } })
  await clock.advance(0)
  t.strictSame(changes, ['added a uid-1 1', 'deleted a uid-1 1'])
  t.equal(informer.store.size, 0)
})

t.test('a delete is reported with the final state that came with it', async (t) => {
  const { api, clock, changes } = await start(t)
  const a = api.put('a', 1)
  const metadata = { ...a.metadata, resourceVersion: '105' }
  api.lastWatch.send({ type: 'DELETED', object: { metadata, spec: { value: 9 } } })
  await clock.advance(0)
  t.strictSame(changes.at(-1), 'deleted a uid-1 9')
})

t.test('events older than what the store knows change nothing', async (t) => {
  const { api, clock, changes, informer } = await start(t)
  const first = api.put('a', 1)
  const second = api.put('a', 2)
  const gone = api.put('b')
  api.remove('b')
  await clock.advance(0)
  changes.length = 0
  api.lastWatch.send({ type: 'MODIFIED', object: first })
  api.lastWatch.send({ type: 'MODIFIED', object: second })
  api.lastWatch.send({ type: 'DELETED', object: first })
  api.lastWatch.send({ type: 'ADDED', object: gone })
  await clock.advance(0)
  t.strictSame(changes, [])
  t.equal(informer.store.get('ns/a')?.spec.value, 2)
  t.equal(informer.store.get('ns/b'), undefined)
  api.lastWatch.close()
  await clock.advance(minuteMs)
  t.equal(api.lastWatch.options.resourceVersion, '104', 'and do not move the version back')
})

t.test('versions are compared as numbers, not as text', async (t) => {
  const { api, clock, informer } = await start(t)
  const a = api.put('a', 1)
  const at = (resourceVersion: string, value: number): Thing => ({
    metadata: { ...a.metadata, resourceVersion },
    spec: { value },
  })
  api.lastWatch.send({ type: 'MODIFIED', object: at('1000', 2) })
  api.lastWatch.send({ type: 'MODIFIED', object: at('999', 3) })
  await clock.advance(0)
  t.equal(informer.store.get('ns/a')?.spec.value, 2)
})

t.test('a watch that is silent for three minutes is opened anew from the last version', async (t) => {
  const harness = await start(t)
  const { api, clock, restarts } = harness
  api.put('a')
  await clock.advance(0)
  const silent = api.lastWatch
  t.equal(await watchesOpened(harness, 3 * minuteMs - 1), 0)
  t.equal(await watchesOpened(harness, 1), 1)
  t.equal(silent.isOpen, false)
  t.equal(api.lastWatch.options.resourceVersion, '101')
  t.strictSame(restarts, ['idle'])
})

t.test('bookmarks keep a watch open', async (t) => {
  const harness = await start(t)
  let opened = 0
  for (let minute = 0; minute < 10; minute += 1) {
    opened += await watchesOpened(harness, minuteMs)
    harness.api.bookmark()
  }
  t.equal(opened, 0)
})

t.test('a list that is never answered is given up after a minute and made again', async (t) => {
  const api = new ScriptedApi()
  api.beforeList = ({ signal }) =>
    api.lists.length > 1
      ? undefined
      : new Promise((_, reject) => signal?.addEventListener('abort', () => reject(kubeError('Aborted', 0))))
  const { clock, informer, restarts } = await start(t, api)
  await clock.advance(minuteMs + 1_000)
  t.equal(informer.hasSynced, true)
  t.strictSame(restarts, ['idle'])
})

t.test('a thousand closed watches make no storm and leave nothing open', async (t) => {
  const { api, clock, restarts, end } = await start(t)
  const { watch } = api
  api.watch = async (...args) => {
    const events = await watch.apply(api, args)
    api.lastWatch.close()
    return events as never
  }
  api.lastWatch.close()
  await clock.advance(minuteMs)
  t.ok(api.watches.length <= 12, `${api.watches.length} watches in the first minute`)
  while (restarts.length < 1_000) await clock.advance(60 * minuteMs)
  t.equal(api.lists.length, 1)
  t.ok(api.openWatches.length === 0)
  t.ok(api.watches.every(({ options }) => options.signal.aborted))
  await end()
  t.equal(clock.pendingTimers, 0)
})

t.test('watches that expire at once do not make a storm of lists', async (t) => {
  const { api, clock } = await start(t)
  api.watchFaults.push(...Array.from({ length: 1_000 }, () => kubeError('Expired', 410)))
  api.lastWatch.close()
  await clock.advance(minuteMs)
  t.ok(api.lists.length <= 12, `${api.lists.length} lists in the first minute`)
})

t.test('a healthy spell ends the back-off', async (t) => {
  const harness = await start(t)
  const { api, clock } = harness
  api.watchFaults.push(...Array.from({ length: 8 }, () => kubeError('ServerError', 500)))
  api.lastWatch.close()
  while (api.watchFaults.length > 0) await clock.advance(1_000)
  await clock.advance(2 * minuteMs)
  t.equal(api.openWatches.length, 1)
  api.lastWatch.break(kubeError('ServerError', 500))
  t.equal(await watchesOpened(harness, 200), 1)
})

t.test('run ends soon after its signal, whatever it is doing, and leaves neither timer nor watch', async (t) => {
  const states = {
    listing: (api: ScriptedApi) => {
      api.beforeList = ({ signal }) =>
        new Promise((_, reject) => signal?.addEventListener('abort', () => reject(kubeError('Aborted', 0))))
    },
    watching: () => {},
    pausing: (api: ScriptedApi) => api.listFaults.push(kubeError('TooManyRequests', 429, 60_000)),
  }
  for (const [state, arrange] of Object.entries(states)) {
    const api = new ScriptedApi()
    arrange(api)
    const { end, clock, restarts } = await start(t, api)
    restarts.length = 0
    await end()
    t.equal(clock.pendingTimers, 0, state)
    t.equal(api.openWatches.length, 0, state)
    t.strictSame(restarts, [], `a stop while ${state} is no restart`)
  }
})

t.test('relist resolves once the store reflects a list that began after the call', async (t) => {
  const { api, clock, informer, changes, restarts } = await start(t)
  const lagging = api.lastWatch
  lagging.send = () => {}
  api.put('a')
  await clock.advance(0)
  t.equal(informer.store.size, 0)
  const seen = informer.relist().then(() => [informer.store.size, ...changes])
  await clock.advance(0)
  t.strictSame(await seen, [1, 'added a uid-1 0'])
  t.equal(lagging.isOpen, false)
  t.equal(api.openWatches.length, 1)
  t.equal(api.lastWatch.options.resourceVersion, '101')
  t.strictSame(restarts, [], 'it is no fault')
})

t.test('a list that was under way when relist was called does not answer it', async (t) => {
  const api = new ScriptedApi()
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  api.beforeList = () => gates[api.lists.length - 1]?.promise
  const { clock, informer } = await start(t, api)
  let isDone = false
  void informer.relist().then(() => (isDone = true))
  gates[0]?.resolve()
  await clock.advance(0)
  t.equal(informer.hasSynced, true)
  t.equal(isDone, false)
  gates[1]?.resolve()
  await clock.advance(0)
  t.equal(isDone, true)
  t.equal(api.lists.length, 2)
})

t.test('relist does not wait for a back-off, and goes on until a list succeeds', async (t) => {
  const { api, clock, informer } = await start(t)
  api.watchFaults.push(kubeError('TooManyRequests', 429, 60_000))
  api.lastWatch.close()
  await clock.advance(1_000)
  api.listFaults.push(kubeError('ServerError', 500))
  let isDone = false
  void informer.relist().then(() => (isDone = true))
  await clock.advance(0)
  t.equal(api.lists.length, 2)
  t.equal(isDone, false)
  await clock.advance(2_000)
  t.equal(isDone, true)
})

t.test('relist rejects when its signal or the run ends first', async (t) => {
  const api = new ScriptedApi()
  const { informer, end, clock } = await start(t, api)
  api.listFaults.push(...Array.from({ length: 50 }, () => kubeError('ServerError', 500)))
  const own = new AbortController()
  const first = informer.relist(own.signal)
  const second = informer.relist()
  await clock.advance(0)
  own.abort(new Error('enough'))
  await t.rejects(first, { message: 'enough' })
  const ended = t.rejects(second, { name: 'AbortError' })
  await end()
  await ended
  await t.rejects(informer.relist(), { name: 'AbortError' })
  await t.rejects(informer.relist(own.signal), { message: 'enough' })
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
