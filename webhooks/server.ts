import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../src/runtime/clock.ts'

/** A serving certificate with its key, both PEM. */
export interface KeyPair {
  readonly key: string
  readonly cert: string
}

/**
 * The API server's HTTP client closes a connection that was idle for 90 s. Were ours the shorter time, it would now and
 * then send a review on a connection that is just being closed.
 */
const keepAliveTimeoutMs = 120_000
/** Slow senders: the API server sends a review in one go. */
const requestTimeoutMs = 30_000

export interface ServerOptions {
  readonly app: FastifyInstance
  readonly pair: KeyPair
  /** 0 picks a free one. */
  readonly port: number
  /** Absent: all addresses of the machine. */
  readonly host?: string
  readonly clock: Clock
}

/** The gate, listening. */
export interface GateServer {
  readonly port: number
  /** False from the beginning of the drain: readiness follows it. */
  readonly isAccepting: boolean
  /** Serves new handshakes with another pair, which must match; connections stay. */
  useCertificate(pair: KeyPair): void
  /**
   * Keeps answering for `drainMs`, each answer the last on its connection, so that the API server moves elsewhere; then
   * closes. Resolves when nothing is open any more. `signal` cuts the wait short.
   */
  drain(drainMs: number, signal?: AbortSignal): Promise<void>
}

/** The port cannot be listened on; the message is one line for the person who started the process. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
  readonly code: string

  constructor(code: string, message: string, cause: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/** Starts to serve `app` over TLS 1.2 or later and HTTP/1.1, which is all that the API server speaks to a Service. */
export async function startServer({ app, pair, port, host, clock }: ServerOptions): Promise<GateServer> {
  await app.ready()
  let isAccepting = true
  const tls = { ...pair, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] } as const
  const server = createServer({ ...tls, keepAliveTimeout: keepAliveTimeoutMs, requestTimeout: requestTimeoutMs })
  // Above the keep-alive timeout, or it would end connections that wait for their next request.
  server.headersTimeout = keepAliveTimeoutMs + 10_000
  let underWay = 0
  let onAnswered = () => {}
  server.on('request', (request, response) => {
    underWay += 1
    response.once('close', () => {
      underWay -= 1
      onAnswered()
    })
    if (!isAccepting) response.setHeader('connection', 'close')
    app.routing(request, response)
  })
  await listen(server, port, host)

  return {
    port: (server.address() as AddressInfo).port,
    get isAccepting() {
      return isAccepting
    },
    useCertificate: (next) => server.setSecureContext({ ...tls, ...next }),
    async drain(drainMs, signal) {
      isAccepting = false
      await clock.sleep(drainMs, signal)
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
      // The API server opens connections in reserve. One that never carried a request is not idle to Node, which would
      // wait for it for ever: so everything goes once nothing is under way.
      onAnswered = () => {
        if (underWay === 0) server.closeAllConnections()
      }
      onAnswered()
      await closed
      await app.close()
    },
  }
}

async function listen(server: Server, port: number, host: string | undefined): Promise<void> {
  const listening = Promise.withResolvers<void>()
  server.once('error', listening.reject)
  server.listen({ port, ...(host !== undefined && { host }) }, listening.resolve)
  try {
    await listening.promise
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code)
    throw new ListenError(code, `cannot listen on port ${port}: ${adviceFor(code, host)}`, error)
  } finally {
    server.off('error', listening.reject)
  }
}

function adviceFor(code: string, host: string | undefined): string {
  switch (code) {
    case 'EADDRINUSE':
      return 'another process uses it. Stop that one, or choose another port.'
    case 'EACCES':
      return 'this user may not use it. Choose a port above 1023.'
    case 'EADDRNOTAVAIL':
      return `this machine has no address ${host}.`
    default:
      return `the system says ${code}.`
  }
}
