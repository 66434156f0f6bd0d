import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, get, request } from 'node:https'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import { fastify } from 'fastify'
import t from 'tap'
import { systemClock } from '../../src/runtime/clock.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createAuthority, signServing } from '../../certs/authority.ts'
import { startServer, type ServerOptions } from '../../webhooks/server.ts'

const now = Date.now()
const authority = await createAuthority(now)
const pair = await signServing(authority, ['127.0.0.1'], now)
const host = '127.0.0.1'

async function start(changes: Partial<ServerOptions> = {}) {
  const app = fastify()
  const slow = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  app.get('/', async () => 'hello')
  app.get('/slow', async () => {
    asked.resolve()
    await slow.promise
    return 'at last'
  })
  const server = await startServer({ app, pair, port: 0, host, clock: systemClock, ...changes })
  return { server, slow, asked }
}

interface Reply {
  status: number | undefined
  connection: string | undefined
  body: string
  peer: PeerCertificate
  protocol: string | null
}
async function call(port: number, agent: Agent | false, path = '/'): Promise<Reply> {
  const outgoing = get({ host, port, path, ca: authority.cert, agent })
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  const socket = incoming.socket as TLSSocket
  const peer = socket.getPeerCertificate()
  const protocol = socket.getProtocol()
  let body = ''
  for await (const chunk of incoming) body += String(chunk)
  return { status: incoming.statusCode, connection: incoming.headers.connection, body, peer, protocol }
}

t.test('it answers over TLS on a port of the system choosing', async (t) => {
  const { server } = await start()
  t.match(await call(server.port, false), { status: 200, body: 'hello', protocol: 'TLSv1.3' })
  await server.drain(0)
})

t.test('TLS 1.2 is the least, HTTP/1.1 the only', async (t) => {
  const { server } = await start()
  const old = connect({
    host,
    port: server.port,
    ca: authority.cert,
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
    ciphers: 'ALL:@SECLEVEL=0',
  })
  await t.rejects(once(old, 'secureConnect'))
  const two = connect({
    host,
    port: server.port,
    ca: authority.cert,
    maxVersion: 'TLSv1.2',
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  await once(two, 'secureConnect')
  t.equal(two.alpnProtocol, 'http/1.1')
  two.destroy()
  await server.drain(0)
})

t.test('an idle connection is kept for longer than the 90 s of the API server', async (t) => {
  const { server } = await start()
  const agent = new Agent({ keepAlive: true })
  const outgoing = request({ host, port: server.port, ca: authority.cert, agent })
  outgoing.end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  const [, seconds] = /timeout=(\d+)/.exec(String(incoming.headers['keep-alive'])) ?? []
  t.ok(Number(seconds) > 90, `it says ${seconds}`)
  incoming.resume()
  agent.destroy()
  await server.drain(0)
})

t.test('a new certificate serves new connections and leaves the old ones open', async (t) => {
  const { server } = await start()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const before = await call(server.port, agent)
  const renewed = await signServing(authority, ['127.0.0.1'], now)
  server.useCertificate(renewed)
  const same = await call(server.port, agent)
  const fresh = await call(server.port, false)
  t.equal(same.peer.serialNumber, before.peer.serialNumber)
  t.not(fresh.peer.serialNumber, before.peer.serialNumber)
  t.match(fresh, { status: 200, protocol: 'TLSv1.3' })
  agent.destroy()
  await server.drain(0)
})

t.test('a port in use is one line that says what to do', async (t) => {
  const { server } = await start()
  const message = `cannot listen on port ${server.port}: another process uses it. Stop that one, or choose another port.`
  await t.rejects(start({ port: server.port }), { name: 'ListenError', code: 'EADDRINUSE', message })
  await server.drain(0)
})

t.test('while it drains it answers each request as the last on its connection, and then closes', async (t) => {
  const clock = new ManualClock()
  const { server, slow, asked } = await start({ clock })
  const agent = new Agent({ keepAlive: true })
  t.match(await call(server.port, agent), { connection: 'keep-alive' })
  t.equal(server.isAccepting, true)
  const drained = server.drain(10_000)
  t.equal(server.isAccepting, false)
  t.match(await call(server.port, agent), { status: 200, connection: 'close' })
  t.match(await call(server.port, false), { status: 200 }, 'new connections are still served')
  const inFlight = call(server.port, false, '/slow')
  await asked.promise
  await clock.advance(10_000)
  await t.rejects(call(server.port, false), { code: 'ECONNREFUSED' })
  slow.resolve()
  t.match(await inFlight, { status: 200, body: 'at last' }, 'what is in flight is finished')
  await drained
  agent.destroy()
})

t.test('a signal cuts the drain short', async (t) => {
  const clock = new ManualClock()
  const { server } = await start({ clock })
  const hurry = new AbortController()
  const drained = server.drain(10_000, hurry.signal)
  hurry.abort()
  await drained
  await t.rejects(call(server.port, false), { code: 'ECONNREFUSED' })
})

t.test('connections without a request, such as the API server opens in reserve, do not hold up the end', async (t) => {
  const { server, slow, asked } = await start()
  const reserve = connect({ host, port: server.port, ca: authority.cert })
  await once(reserve, 'secureConnect')
  const inFlight = call(server.port, false, '/slow')
  await asked.promise
  const drained = server.drain(0)
  slow.resolve()
  t.match(await inFlight, { status: 200, body: 'at last' }, 'what is in flight is finished first')
  await Promise.all([drained, once(reserve, 'close')])
  t.pass('it ended by itself')
})
