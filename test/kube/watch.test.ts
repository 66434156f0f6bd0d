import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { pods } from '../../src/api/core.ts'
import type { WatchEvent } from '../../src/kube/client.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import { StreamedBody } from '../../src/kube/watch-stream.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { clientOf, failure, rejectionOf, startServer } from './scripted-server.ts'
import type { Teardown } from './scripted-server.ts'

const added = (name: string, extra: object = {}) => ({ type: 'ADDED', object: { metadata: { name }, ...extra } })
const line = (event: object) => `${JSON.stringify(event)}\n`

/** A server whose watches are written by the test; `open` resolves with a new watch's events and its server side. */
async function startWatched(t: Teardown) {
  const responses: ((response: ServerResponse) => void)[] = []
  const server = await startServer(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    responses.shift()?.(response)
  })
  const clock = new ManualClock()
  const client = clientOf(t, server, { clock })
  const controller = new AbortController()
  const open = async () => {
    const { promise, resolve } = Promise.withResolvers<ServerResponse>()
    responses.push(resolve)
    const events = await client.watch(pods, { resourceVersion: '7', signal: controller.signal })
    return { events: events[Symbol.asyncIterator](), response: await promise }
  }
  return { server, client, clock, controller, open }
}

/** Writes in pieces that reach the other side one by one. */
async function writeSeparately(response: ServerResponse, pieces: readonly (string | Buffer)[]): Promise<void> {
  for (const piece of pieces) await new Promise<void>((resolve) => void response.write(piece, () => resolve()))
}

async function collect(events: AsyncIterator<WatchEvent<KubeObject>>): Promise<WatchEvent<KubeObject>[]> {
  const collected: WatchEvent<KubeObject>[] = []
  for (let next = await events.next(); !next.done; next = await events.next()) collected.push(next.value)
  return collected
}

t.test('a watch asks for bookmarks, from a version on', async (t) => {
  const server = await startServer(t, (_request, response) => void response.end())
  const events = await clientOf(t, server).watch(pods, {
    namespace: 'default',
    labelSelector: 'a=b',
    fieldSelector: 'metadata.name=a',
    resourceVersion: '7',
    timeoutSeconds: 300,
    signal: new AbortController().signal,
  })
  t.same(await collect(events[Symbol.asyncIterator]()), [])
  t.equal(server.requests[0]?.path, '/api/v1/namespaces/default/pods')
  t.same(server.requests[0]?.query, {
    watch: 'true',
    allowWatchBookmarks: 'true',
    labelSelector: 'a=b',
    fieldSelector: 'metadata.name=a',
    resourceVersion: '7',
    timeoutSeconds: '300',
  })
})

t.test('events arrive one by one, while the watch is open', async (t) => {
  const { open } = await startWatched(t)
  const { events, response } = await open()
  response.write(line(added('a')))
  t.same((await events.next()).value, added('a'))
  response.write(line(added('b')))
  t.same((await events.next()).value, added('b'))
})

t.test('events are put together however the bytes are cut', async (t) => {
  const { open } = await startWatched(t)
  const { events, response } = await open()
  const expected = [added('a', { text: 'grün 🌲 \\n' }), added('b'), { type: 'BOOKMARK', object: { metadata: {} } }]
  const bytes = Buffer.from(expected.map((event) => line(event)).join(''))
  const collected = collect(events)
  await writeSeparately(
    response,
    Array.from(bytes, (byte) => Buffer.of(byte)),
  )
  response.end()
  t.same(await collected, expected)
})

t.test('several events in one chunk, empty lines between them, are as many events', async (t) => {
  const { open } = await startWatched(t)
  const { events, response } = await open()
  response.end(`${line(added('a'))}\n${line(added('b'))}${line(added('c'))}`)
  t.same(await collect(events), [added('a'), added('b'), added('c')])
})

t.test('an event of several megabytes arrives whole', async (t) => {
  const { open } = await startWatched(t)
  const { events, response } = await open()
  const big = added('big', { text: 'ü'.repeat(4_000_000) })
  response.write(line(big))
  response.end(line(added('small')))
  const [first, second] = await collect(events)
  t.equal(JSON.stringify(first), JSON.stringify(big))
  t.same(second, added('small'))
})

t.test('a reader that does not read makes the server wait, and goes on where it stopped', async (t) => {
  const calls: string[] = []
  const body = new StreamedBody()
  const note = (call: string) => () => void calls.push(call)
  body.attach({ pause: note('pause'), resume: note('resume'), cancel: note('cancel') })
  const megabyte = Buffer.alloc(1024 * 1024)
  for (let i = 0; i < 4; i++) body.push(megabyte)
  t.same(calls, [])
  body.push(megabyte)
  t.same(calls, ['pause'])
  t.equal((await body.next())?.length, 5)
  t.same(calls, ['pause', 'resume'])
  body.finish()
  t.equal(await body.next(), undefined)
})

t.test('a burst that is larger than what may wait arrives whole', async (t) => {
  const { open } = await startWatched(t)
  const { events, response } = await open()
  const event = Buffer.from(line(added('a', { text: 'x'.repeat(1_000_000) })))
  for (let i = 0; i < 30; i++) response.write(event)
  response.end()
  t.equal((await collect(events)).length, 30)
})

t.test('an ERROR event is passed on, and ends nothing by itself', async (t) => {
  const { open } = await startWatched(t)
  const { events, response } = await open()
  const expired = { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }
  response.end(line(expired) + line(added('a')))
  t.same(await collect(events), [expired, added('a')])
})

t.test('a watch that the server closes ends; one that breaks throws', async (t) => {
  const { open } = await startWatched(t)
  const closed = await open()
  closed.response.end(line(added('a')))
  t.same(await collect(closed.events), [added('a')])

  const broken = await open()
  broken.response.write(line(added('a')))
  t.same((await broken.events.next()).value, added('a'))
  broken.response.destroy()
  const error = (await rejectionOf(broken.events.next() as Promise<unknown>)) as Error
  t.match(error, { code: 'OutcomeUnknown' })
  t.match(error.message, /^watch pods \*: OutcomeUnknown: the connection failed after the request was sent/)
})

t.test('an event that is cut off or is not JSON throws, without quoting it', async (t) => {
  const { open } = await startWatched(t)
  for (const text of ['{"type":"ADDED","object":{"data":"secret', 'secret\n']) {
    const { events, response } = await open()
    response.end(text)
    const error = (await rejectionOf(events.next() as Promise<unknown>)) as Error
    t.match(error, { code: 'OutcomeUnknown' })
    t.notMatch(`${error.message} ${String(error.cause)}`, /secret/)
  }
})

t.test('a refused watch rejects like any other request', async (t) => {
  const server = await startServer(t, failure(410, 'Expired', 'too old'))
  const client = clientOf(t, server)
  const options = { resourceVersion: '7', signal: new AbortController().signal }
  const error = (await rejectionOf(client.watch(pods, options))) as Error
  t.match(error, { code: 'Expired', status: 410 })
  t.equal(error.message, 'watch pods *: Expired (410): too old')
})

t.test('the signal ends a watch and closes its socket', async (t) => {
  const { server, controller, open } = await startWatched(t)
  const { events } = await open()
  const next = rejectionOf(events.next() as Promise<unknown>)
  controller.abort()
  t.match(await next, { code: 'Aborted' })
  for (const socket of server.sockets) if (!socket.destroyed) await once(socket, 'close')
  t.equal(server.openSockets, 0)
  t.match(await rejectionOf(open()), { code: 'Aborted' })
})

t.test('leaving the loop closes the socket', async (t) => {
  const { server, open } = await startWatched(t)
  const { events, response } = await open()
  response.write(line(added('a')))
  await events.next()
  await events.return?.()
  for (const socket of server.sockets) if (!socket.destroyed) await once(socket, 'close')
  t.equal(server.openSockets, 0)
})

t.test('the deadline is for opening a watch, not for keeping it open', async (t) => {
  const { clock, open } = await startWatched(t)
  const { events, response } = await open()
  t.equal(clock.pendingTimers, 0)
  await clock.advance(3_600_000)
  response.end(line(added('a')))
  t.same(await collect(events), [added('a')])
})

t.test('a watch that is not answered ends after thirty seconds', async (t) => {
  const clock = new ManualClock()
  const { promise: arrived, resolve } = Promise.withResolvers<unknown>()
  const server = await startServer(t, resolve)
  const options = { resourceVersion: '7', signal: new AbortController().signal }
  const watch = rejectionOf(clientOf(t, server, { clock }).watch(pods, options))
  await arrived
  await clock.advance(30_000)
  t.match(await watch, { code: 'OutcomeUnknown' })
})

t.test('a thousand watches that the server closes leave no socket', async (t) => {
  const server = await startServer(t, (_request, response) => void response.end(line(added('a'))))
  const client = clientOf(t, server)
  const options = { resourceVersion: '7', signal: new AbortController().signal }
  let received = 0
  for (let i = 0; i < 1000; i++) {
    for await (const event of await client.watch(pods, options)) received += event.type === 'ADDED' ? 1 : 0
  }
  t.equal(received, 1000)
  t.ok(server.openSockets <= 2)
})
