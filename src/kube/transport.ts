import { systemClock } from '../runtime/clock.ts'
import type { Clock } from '../runtime/clock.ts'
import type { ClusterAccess, Credentials } from './config.ts'
import { openConnections } from './connections.ts'
import type { Connections } from './connections.ts'
import { Cutoff } from './cutoff.ts'
import { KubeError } from './errors.ts'
import { exchange } from './exchange.ts'
import type { Head, HttpRequest, Reply } from './exchange.ts'
import { ServerClock } from './server-clock.ts'
import { errorOfFailure, errorOfReply } from './status-error.ts'
import { openStream, readAll } from './watch-stream.ts'
import type { StreamedBody } from './watch-stream.ts'

/** As in RBAC. */
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/** One request of the API, before it is known who sends it over which connection. */
export interface Call {
  readonly verb: Verb
  readonly method: HttpRequest['method']
  /** Plural, with the subresource: `pods/status`. */
  readonly resource: string
  /** For people: `patch sandboxes default/a`. */
  readonly what: string
  /** Below the server's URL, with the query. */
  readonly path: string
  /** True when the request, carried out, leaves something changed. */
  readonly isWrite: boolean
  /** For all of it, from credentials to the last byte (for a watch: the first). */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  readonly body?: string
  readonly contentType?: string
}

export interface RequestReport {
  verb: Verb
  resource: string
  /** The HTTP status, or the error's code when no reply came. */
  code: string
  /** Until the reply was complete; for a watch, until it was open. */
  durationMs: number
}

export interface TransportOptions {
  userAgent?: string
  /** Told about every attempt, so twice about a request that was repeated with fresh credentials. */
  onRequest?: (report: RequestReport) => void
  /** Sockets for everything but watches; default 64. */
  connections?: number
  clock?: Clock
}

/** An open watch: what it sends, and what must be closed after it. */
export interface OpenWatch {
  readonly body: StreamedBody
  readonly cutoff: Cutoff
}

type Send<R extends Head> = (request: HttpRequest, connections: Connections) => Promise<R>

/** Sends calls to one cluster, and knows what every call has in common: credentials, connections, time, reporting. */
export class Transport {
  readonly #access: ClusterAccess
  readonly #options: TransportOptions
  readonly #clock: Clock
  readonly #serverClock = new ServerClock()
  /** A server behind a gateway may have a path of its own, which goes before every other. */
  readonly #prefix: string
  #connections: Connections | undefined
  #isClosed = false

  constructor(access: ClusterAccess, options: TransportOptions) {
    this.#access = access
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#prefix = access.server.pathname.replace(/\/+$/, '')
  }

  /** The whole reply of a call that succeeded; otherwise rejects with a `KubeError`. */
  async send(call: Call): Promise<Reply> {
    const cutoff = new Cutoff(this.#clock, call.timeoutMs, call.signal)
    try {
      const reply = await this.#attempts(call, cutoff, (request, { requests }) => exchange(requests, request, cutoff))
      if (reply.status >= 300) throw errorOfReply(call, reply)
      return reply
    } catch (error) {
      throw errorOfFailure(call, error)
    } finally {
      cutoff.close()
    }
  }

  /** Resolves as soon as the reply begins, rejects with a `KubeError`. From then on only the call's signal ends it. */
  async open(call: Call): Promise<OpenWatch> {
    const cutoff = new Cutoff(this.#clock, call.timeoutMs, call.signal)
    try {
      const reply = await this.#attempts(call, cutoff, (request, { watches }) => openStream(watches, request, cutoff))
      if (reply.status >= 300) throw errorOfReply(call, { ...reply, body: await readAll(reply.body) })
      cutoff.liftDeadline()
      return { body: reply.body, cutoff }
    } catch (error) {
      cutoff.close()
      throw errorOfFailure(call, error)
    }
  }

  serverClockOffsetMs(): number {
    return this.#serverClock.offsetMs()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([this.#connections?.requests.destroy(), this.#connections?.watches.destroy()])
  }

  /** Sends the request; once more, with credentials read anew, when the server does not accept those it has. */
  async #attempts<R extends Head>(call: Call, cutoff: Cutoff, send: Send<R>): Promise<R> {
    const credentials = await cutoff.race(this.#credentials(call))
    const reply = await this.#attempt(call, credentials, send)
    if (reply.status !== 401) return reply
    const fresh = await cutoff.race(this.#credentials(call, credentials))
    return await this.#attempt(call, fresh, send)
  }

  async #attempt<R extends Head>(call: Call, credentials: Credentials, send: Send<R>): Promise<R> {
    const sentAt = this.#clock.now()
    const begin = this.#clock.monotonic()
    const report = (code: string) => {
      const durationMs = this.#clock.monotonic() - begin
      this.#options.onRequest?.({ verb: call.verb, resource: call.resource, code, durationMs })
    }
    try {
      const reply = await send(this.#request(call, credentials), this.#connectionsFor(credentials))
      this.#serverClock.observe(reply.headers.date, sentAt, this.#clock.now())
      report(String(reply.status))
      return reply
    } catch (error) {
      const failure = errorOfFailure(call, error)
      report(failure.code)
      throw failure
    }
  }

  #request(call: Call, credentials: Credentials): HttpRequest {
    return {
      origin: this.#access.server.origin,
      method: call.method,
      path: this.#prefix + call.path,
      headers: {
        ...credentials.headers,
        accept: 'application/json',
        'user-agent': this.#options.userAgent ?? 'sandgate',
        ...(call.contentType !== undefined && { 'content-type': call.contentType }),
      },
      ...(call.body !== undefined && { body: call.body }),
    }
  }

  async #credentials(call: Call, refused?: Credentials): Promise<Credentials> {
    if (this.#isClosed)
      throw new KubeError('Unreachable', `${call.what}: Unreachable: the client is closed`, { status: 0 })
    try {
      return await this.#access.credentials(refused)
    } catch (cause) {
      const explanation = cause instanceof Error ? cause.message : 'no credentials'
      throw new KubeError('Unauthorized', `${call.what}: Unauthorized: ${explanation}`, { status: 0, cause })
    }
  }

  /** A client certificate belongs to its connections: with another certificate there have to be others. */
  #connectionsFor(credentials: Credentials): Connections {
    const former = this.#connections
    if (former?.tls === credentials.tls) return former
    this.#connections = openConnections(this.#access, credentials.tls, this.#options.connections)
    // Requests and watches under way end by themselves.
    void former?.requests.close()
    void former?.watches.close()
    return this.#connections
  }
}
