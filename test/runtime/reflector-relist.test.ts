import t from 'tap'
import { start } from './reflector-harness.ts'
import { kubeError, ScriptedApi } from './scripted-api.ts'

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
