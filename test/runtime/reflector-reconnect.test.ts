import t from 'tap'
import { minuteMs, start, watchesOpened } from './reflector-harness.ts'
import { kubeError, ScriptedApi } from './scripted-api.ts'

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
