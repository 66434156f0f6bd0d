import t from 'tap'
import { minuteMs, start } from './reflector-harness.ts'
import { type Thing } from './scripted-api.ts'

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
