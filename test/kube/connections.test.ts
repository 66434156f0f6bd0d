import t from 'tap'
import { pods } from '../../src/api/core.ts'
import { anObject, clientOf, json, startServer } from './scripted-server.ts'

// Undici may open a second connection for a request that is made while the first reply is still being put away.
const atMost = 2

const ref = { namespace: 'default', name: 'a' }

t.test('requests one after the other share their connections', async (t) => {
  const server = await startServer(t)
  const client = clientOf(t, server)
  for (let i = 0; i < 20; i++) await client.get(pods, ref)
  await client.patch(pods, ref, {}, { type: 'merge' })
  await client.delete(pods, ref)
  t.equal(server.requests.length, 22)
  t.ok(server.sockets.size <= atMost)
})

t.test('a refused request does not cost its connection', async (t) => {
  const server = await startServer(t, (_request, response) => json(response, 404, { reason: 'NotFound' }))
  const client = clientOf(t, server)
  for (let i = 0; i < 5; i++) await client.get(pods, ref).catch(() => undefined)
  t.ok(server.sockets.size <= atMost)
})

t.test('many requests at once use as many connections as they may, and no more', async (t) => {
  const server = await startServer(t)
  const client = clientOf(t, server, { connections: 4 })
  await Promise.all(Array.from({ length: 100 }, () => client.get(pods, ref)))
  t.equal(server.requests.length, 100)
  t.equal(server.sockets.size, 4)
})

t.test('open watches take no connection from writes', async (t) => {
  const server = await startServer(t, (request, response) => {
    if (request.query['watch'] !== 'true') return anObject(request, response)
    response.writeHead(200)
    return response.flushHeaders()
  })
  const client = clientOf(t, server, { connections: 1 })
  const controller = new AbortController()
  const options = { resourceVersion: '1', signal: controller.signal }
  await Promise.all(Array.from({ length: 30 }, () => client.watch(pods, options)))
  await client.create(pods, { metadata: ref })
  t.equal(server.openSockets, 31)
})

t.test('many requests may share one signal', async (t) => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => void warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const server = await startServer(t)
  const client = clientOf(t, server)
  const { signal } = new AbortController()
  await Promise.all(Array.from({ length: 50 }, () => client.get(pods, ref, { signal })))
  t.same(warnings, [])
})
