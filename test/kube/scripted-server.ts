import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { ServerOptions } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { ClusterAccess, Credentials } from '../../src/kube/config.ts'
import { createKubeClient } from '../../src/kube/rest-client.ts'
import type { KubeClientOptions } from '../../src/kube/rest-client.ts'

export interface SeenRequest {
  method: string
  path: string
  query: Record<string, string>
  headers: IncomingHttpHeaders
  body: string
  socket: Socket
}

export type Script = (request: SeenRequest, response: ServerResponse) => void

/** What a test offers for cleaning up after itself. */
export type Teardown = { teardown: (callback: () => unknown) => void }

/** A server that does what a test tells it to, and remembers what it was asked. */
export class ScriptedServer {
  readonly requests: SeenRequest[] = []
  /** Connections ever made. */
  readonly sockets = new Set<Socket>()
  script: Script
  readonly #server: Server

  constructor(server: Server, script: Script) {
    this.#server = server
    this.script = script
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void this.#handle(request, response))
    server.on('connection', (socket) => this.sockets.add(socket))
    // Otherwise a half-sent reply that a test wants to be lost would be finished by the client's idle rules.
    server.keepAliveTimeout = 60_000
  }

  get url(): URL {
    const protocol = 'setSecureContext' in this.#server ? 'https' : 'http'
    return new URL(`${protocol}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`)
  }

  get openSockets(): number {
    return [...this.sockets].filter((socket) => !socket.destroyed).length
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve))
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()))
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const url = new URL(request.url ?? '/', 'http://server')
    const seen = {
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      body: Buffer.concat(parts).toString(),
      socket: request.socket,
    }
    this.requests.push(seen)
    this.script(seen, response)
  }
}

export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

/** Answers with the `Status` that an API server sends with a failure. */
export function failure(status: number, reason?: string, message = 'it is so', details?: object): Script {
  return (_request, response) => json(response, status, { kind: 'Status', code: status, reason, message, details })
}

/** Answers everything with an object named after the request's path. */
export const anObject: Script = (request, response) =>
  json(response, 200, { metadata: { name: request.path.split('/').at(-1) } })

export async function startServer(
  t: Teardown,
  script: Script = anObject,
  tls?: ServerOptions,
): Promise<ScriptedServer> {
  const server = new ScriptedServer(tls ? createTlsServer(tls) : createServer(), script)
  await server.listen()
  t.teardown(() => server.close())
  return server
}

export const someone: Credentials = { headers: { authorization: 'Bearer secret-token' }, tls: {} }

export function accessTo(
  url: URL,
  credentials: ClusterAccess['credentials'] = () => Promise.resolve(someone),
): ClusterAccess {
  return { server: url, credentials }
}

/** A client of `server`, closed with the test. */
export function clientOf(t: Teardown, access: ClusterAccess | ScriptedServer, options?: KubeClientOptions) {
  const client = createKubeClient(access instanceof ScriptedServer ? accessTo(access.url) : access, options)
  t.teardown(() => client.close())
  return client
}

/** The rejection of `promise`; a promise that is kept fails the test. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => {
      throw new Error('the promise was expected to be rejected')
    },
    (error: unknown) => error,
  )
}
