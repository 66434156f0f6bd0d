import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { pods } from '../../src/api/core.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { accessTo, anObject, clientOf, rejectionOf, someone, startServer } from './scripted-server.ts'
import type { SeenRequest } from './scripted-server.ts'

const ref = { namespace: 'default', name: 'a' }
const pod = { metadata: ref }

/** A port on which nobody listens. */
async function closedPort(): Promise<URL> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return new URL(`http://127.0.0.1:${port}`)
}

t.test('a refused connection is Unreachable, for reads and writes', async (t) => {
  const client = clientOf(t, accessTo(await closedPort()))
  t.match(await rejectionOf(client.get(pods, ref)), { code: 'Unreachable', status: 0 })
  const error = (await rejectionOf(client.create(pods, pod))) as Error
  t.match(error, { code: 'Unreachable', cause: { code: 'ECONNREFUSED' } })
  t.match(
    error.message,
    /^create pods default\/a: Unreachable: the connection failed before the request was sent \(.*ECONNREFUSED.*\)$/,
  )
})

t.test('a name that does not resolve is Unreachable', async (t) => {
  const client = clientOf(t, accessTo(new URL('http://api.invalid:1')))
  t.match(await rejectionOf(client.create(pods, pod)), { code: 'Unreachable' })
})

t.test('a connection that is cut during its handshake is Unreachable', async (t) => {
  const server = createServer((socket) => void socket.once('data', () => socket.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const client = clientOf(t, accessTo(new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)))
  t.match(await rejectionOf(client.create(pods, pod)), { code: 'Unreachable' })
})

t.test('a lost reply leaves the outcome of a request unknown', async (t) => {
  const server = await startServer(t, (request) => request.socket.destroy())
  const client = clientOf(t, server)
  t.match(await rejectionOf(client.create(pods, pod)), { code: 'OutcomeUnknown', status: 0 })
  t.match(await rejectionOf(client.get(pods, ref)), { code: 'OutcomeUnknown', status: 0 })
  t.equal(server.requests.length, 2, 'and the request is not repeated behind its back')
})

t.test('a reply that is cut off within its body is a lost reply', async (t) => {
  const server = await startServer(t, (_request, response) => {
    response.writeHead(200, { 'content-length': '1000' })
    response.write('{"metadata":', () => response.destroy())
  })
  t.match(await rejectionOf(clientOf(t, server).create(pods, pod)), { code: 'OutcomeUnknown' })
})

t.test('a write without a reply ends after three seconds, a read after thirty, with its connection', async (t) => {
  const clock = new ManualClock()
  const { promise: secondArrived, resolve } = Promise.withResolvers<void>()
  const server = await startServer(t, () => server.requests.length === 2 && resolve())
  const client = clientOf(t, server, { clock })
  const write = rejectionOf(client.create(pods, pod))
  const read = rejectionOf(client.get(pods, ref))
  await secondArrived
  await clock.advance(3_000)
  const error = (await write) as Error
  t.match(error, { code: 'OutcomeUnknown' })
  t.equal(error.message, 'create pods default/a: OutcomeUnknown: no reply in time')
  await clock.advance(26_999)
  t.equal(clock.pendingTimers, 1, 'the read still waits')
  await clock.advance(1)
  t.match(await read, { code: 'OutcomeUnknown' })
  await Promise.all(
    server.requests.map(async ({ socket }) => {
      if (!socket.destroyed) await once(socket, 'close')
    }),
  )
  t.equal(server.openSockets, 0)
})

t.test('what waited in vain for a connection was certainly not sent, and costs no connection', async (t) => {
  const clock = new ManualClock()
  const { promise: arrived, resolve } = Promise.withResolvers<SeenRequest>()
  const held: (() => void)[] = []
  const server = await startServer(t, (request, response) => {
    held.push(() => anObject(request, response))
    resolve(request)
  })
  const client = clientOf(t, server, { clock, connections: 1 })
  const read = client.get(pods, ref)
  await arrived
  const write = rejectionOf(client.create(pods, pod))
  await clock.advance(3_000)
  const error = (await write) as Error
  t.match(error, { code: 'Unreachable' })
  t.equal(error.message, 'create pods default/a: Unreachable: no connection in time')

  held[0]?.()
  await read
  server.script = anObject
  await client.get(pods, ref)
  t.same(
    server.requests.map(({ method }) => method),
    ['GET', 'GET'],
  )
  t.equal(server.sockets.size, 1)
})

t.test("the caller's signal ends a request at any time", async (t) => {
  const { promise: arrived, resolve } = Promise.withResolvers<SeenRequest>()
  const server = await startServer(t, resolve)
  const client = clientOf(t, server)
  t.match(await rejectionOf(client.get(pods, ref, { signal: AbortSignal.abort() })), { code: 'Aborted' })
  t.equal(server.requests.length, 0)

  const controller = new AbortController()
  const write = rejectionOf(client.create(pods, pod, { signal: controller.signal }))
  const { socket } = await arrived
  controller.abort()
  const error = (await write) as Error
  t.match(error, { code: 'Aborted' })
  t.equal(error.message, 'create pods default/a: Aborted: ended by the caller after the request was sent')
  if (!socket.destroyed) await once(socket, 'close')
})

t.test('the deadline covers the credentials too', async (t) => {
  const clock = new ManualClock()
  const server = await startServer(t)
  const client = clientOf(
    t,
    accessTo(server.url, () => new Promise(() => undefined)),
    { clock },
  )
  const write = rejectionOf(client.create(pods, pod))
  await clock.advance(3_000)
  t.match(await write, { code: 'Unreachable' })
})

t.test('a finished request leaves neither timer nor listener', async (t) => {
  const clock = new ManualClock()
  const server = await startServer(t)
  const client = clientOf(t, server, { clock })
  let listeners = 0
  const { signal } = new AbortController()
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...parameters: Parameters<typeof add>) => {
    listeners += 1
    add(...parameters)
  }
  signal.removeEventListener = (...parameters: Parameters<typeof remove>) => {
    listeners -= 1
    remove(...parameters)
  }
  await client.get(pods, ref, { signal })
  t.equal(listeners, 0)
  t.equal(clock.pendingTimers, 0)
})

t.test('a closed client sends nothing more, and ends what is under way', async (t) => {
  const { promise: arrived, resolve } = Promise.withResolvers<SeenRequest>()
  const server = await startServer(t, resolve)
  const client = clientOf(t, server)
  const write = rejectionOf(client.create(pods, pod))
  await arrived
  await client.close()
  t.match(await write, { code: 'OutcomeUnknown' })
  t.match(await rejectionOf(client.create(pods, pod)), { code: 'Unreachable' })
  t.equal(server.requests.length, 1)
})

t.test('no error tells the credentials', async (t) => {
  const server = await startServer(t, (request) => request.socket.destroy())
  const messages: string[] = []
  const clients = [
    clientOf(t, server),
    clientOf(t, accessTo(await closedPort())),
    // A line break makes a header invalid, which is refused before anything is sent.
    clientOf(
      t,
      accessTo(server.url, () => Promise.resolve({ ...someone, headers: { authorization: 'secret-token\n' } })),
    ),
  ]
  for (const client of clients) {
    for (let error: unknown = await rejectionOf(client.get(pods, ref)); error instanceof Error; error = error.cause) {
      messages.push(error.stack ?? '', JSON.stringify(error))
    }
  }
  t.ok(messages.length >= 8)
  t.notMatch(messages.join('\n'), /secret-token/)
})
