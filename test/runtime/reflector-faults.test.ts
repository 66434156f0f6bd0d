import t from 'tap'
import type { KubeErrorCode } from '../../src/kube/errors.ts'
import type { RestartReason } from '../../src/runtime/restart-reason.ts'
import { minuteMs, start } from './reflector-harness.ts'
import { kubeError, ScriptedApi } from './scripted-api.ts'

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
  [
    'a 410 reply',
    ({ lastWatch, watchFaults }: ScriptedApi) => {
      watchFaults.push(kubeError('Expired', 410))
      lastWatch.close()
    },
  ],
  [
    'an ERROR event with code 410',
    ({ lastWatch }: ScriptedApi) => lastWatch.send({ type: 'ERROR', object: { code: 410 } }),
  ],
  [
    'an ERROR event with reason Expired',
    ({ lastWatch }: ScriptedApi) => lastWatch.send({ type: 'ERROR', object: { reason: 'Expired' } }),
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
