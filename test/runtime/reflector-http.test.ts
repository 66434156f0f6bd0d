import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import t from 'tap'
import { createKubeClient } from '../../src/kube/rest-client.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createReflector } from '../../src/runtime/reflector.ts'
import type { RestartReason } from '../../src/runtime/restart-reason.ts'
import { type Thing, things } from './scripted-api.ts'

type Answer = (reply: ServerResponse, request: IncomingMessage) => void

const collection = '/apis/test.dev/v1/namespaces/ns/things'

/** A reflector over the real client, and a server that answers each request with the next entry of `script`. */
async function start(t_: { teardown(fn: () => Promise<void>): void }, script: Answer[]) {
  const requests: string[] = []
  const asked = new Map<number, () => void>()
  const server = createServer((request, reply) => {
    const url = new URL(request.url ?? '', 'http://localhost')
    const { watch, resourceVersion: version } = Object.fromEntries(url.searchParams)
    requests.push(`${url.pathname === collection ? '' : url.pathname}${watch ? `watch ${version}` : 'list'}`)
    const answer = script.shift()
    if (answer === undefined) reply.writeHead(200).flushHeaders()
    else answer(reply, request)
    asked.get(requests.length)?.()
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const tokens = { current: 'old' }
  const client = createKubeClient({
    server: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    credentials: () => Promise.resolve({ headers: { authorization: `Bearer ${tokens.current}` }, tls: {} }),
  })
  const clock = new ManualClock()
  const stop = new AbortController()
  const restarts: RestartReason[] = []
  const informer = createReflector({
    client,
    resource: things,
    namespace: 'ns',
    clock,
    log: pino({ level: 'silent' }),
    onRestart: (reason) => {
      restarts.push(reason)
      // Time passes only while the reflector waits, and then as far as it wants.
      setImmediate(() => void clock.advance(30_000))
    },
    freeze: true,
  })
  const running = informer.run(stop.signal)
  t_.teardown(async () => {
    stop.abort()
    await running
    await client.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  /** Resolves when the server has been asked `count` times. */
  const requested = (count: number): Promise<void> =>
    requests.length >= count ? Promise.resolve() : new Promise((resolve) => void asked.set(count, resolve))
  const changed = (name: string): Promise<void> =>
    new Promise((resolve) => {
      informer.onChange(({ object }) => {
        if (object.metadata.name === name) resolve()
      })
    })
  return { informer, requests, restarts, requested, changed, tokens, server, clock, stop, running }
}

function thing(name: string, resourceVersion: string): Thing {
  return { metadata: { namespace: 'ns', name, uid: name, resourceVersion }, spec: { value: 0 } }
}

const list =
  (resourceVersion: string, ...items: Thing[]): Answer =>
  (reply) =>
    void reply.end(JSON.stringify({ metadata: { resourceVersion }, items }))

/** Sends the events and keeps the watch open, unless `then` does otherwise. */
const watch =
  (events: unknown[], then: (reply: ServerResponse) => void = () => {}): Answer =>
  (reply) => {
    reply.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    reply.write(events.map((event) => `${JSON.stringify(event)}\n`).join(''), () => then(reply))
  }

const refuse =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (reply) =>
    void reply.writeHead(status, headers).end(JSON.stringify({ kind: 'Status', code: status }))

const reset: Answer = (reply) => void reply.socket?.resetAndDestroy()

t.test('it follows a server that closes, resets, refuses, throttles and fails, and lists once', async (t) => {
  const { informer, requests, restarts, changed } = await start(t, [
    list('10', thing('a', '9')),
    watch([{ type: 'ADDED', object: thing('b', '11') }], (reply) => void reply.end()),
    watch([{ type: 'ADDED', object: thing('c', '12') }], (reply) => void reply.socket?.resetAndDestroy()),
    reset,
    refuse(401),
    refuse(401),
    refuse(429, { 'retry-after': '1' }),
    refuse(500),
    watch([{ type: 'ERROR', object: { kind: 'Status', code: 500 } }]),
    watch([{ type: 'BOOKMARK', object: { metadata: { resourceVersion: '20' } } }], (reply) => void reply.end()),
    watch([{ type: 'ADDED', object: thing('d', '21') }]),
  ])
  await changed('d')
  t.strictSame(
    [...informer.store.values()].map(({ metadata }) => metadata.name),
    ['a', 'b', 'c', 'd'],
  )
  t.strictSame(requests, [
    'list',
    'watch 10',
    'watch 11',
    'watch 12',
    'watch 12',
    'watch 12',
    'watch 12',
    'watch 12',
    'watch 12',
    'watch 12',
    'watch 20',
  ])
  t.strictSame(restarts, [
    'closed',
    'connection',
    'connection',
    'unauthorized',
    'throttled',
    'server-error',
    'error-event',
    'closed',
  ])
})

t.test('after 410, as a reply or as an event, it lists again', async (t) => {
  const { informer, requests, changed } = await start(t, [
    list('10', thing('a', '9')),
    refuse(410),
    list('20', thing('b', '19')),
    watch([{ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }]),
    list('30', thing('c', '29')),
    watch([{ type: 'ADDED', object: thing('d', '31') }]),
  ])
  await changed('d')
  t.strictSame(
    [...informer.store.values()].map(({ metadata }) => metadata.name),
    ['c', 'd'],
  )
  t.strictSame(requests, ['list', 'watch 10', 'list', 'watch 20', 'list', 'watch 30'])
})

t.test('an event whose bytes come in pieces is one event', async (t) => {
  const line = `${JSON.stringify({ type: 'ADDED', object: thing('pièce', '11') })}\n`
  const bytes = Buffer.from(line)
  const { informer, changed } = await start(t, [
    list('10'),
    (reply) => {
      const cut = bytes.indexOf('è') + 1
      reply.writeHead(200).write(bytes.subarray(0, cut))
      setImmediate(() => reply.write(bytes.subarray(cut)))
    },
  ])
  await changed('pièce')
  t.equal(informer.store.size, 1)
})

t.test('a watch that is stopped, relisted over or silent leaves no connection behind', async (t) => {
  const closed: Promise<unknown>[] = []
  const keepOpen: Answer = (reply) => {
    closed.push(new Promise((resolve) => reply.once('close', resolve)))
    reply.writeHead(200).flushHeaders()
  }
  const { informer, clock, requested, stop, running } = await start(t, [
    list('10'),
    keepOpen,
    list('20'),
    keepOpen,
    keepOpen,
  ])
  await requested(2)
  await informer.relist()
  await closed[0]
  await requested(4)
  await clock.advance(180_000)
  await closed[1]
  await requested(5)
  stop.abort()
  await running
  await closed[2]
  t.equal(closed.length, 3)
})

t.test('two hundred watches that are closed at once leave no more connections than one', async (t) => {
  const { requested, server } = await start(t, [
    list('10'),
    ...Array.from({ length: 200 }, () => watch([], (reply) => void reply.end())),
  ])
  await requested(202)
  const open = await new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )
  t.ok(open <= 2, `${open} connections: one kept alive after the list, one for the watch`)
})
