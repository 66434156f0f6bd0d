import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Cutoff, CutoffReason } from './cutoff.ts'

export interface HttpRequest {
  origin: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With the query. */
  path: string
  headers: Readonly<Record<string, string>>
  body?: string
}

/** An exchange that ended without a whole reply. */
export class ExchangeError extends Error {
  override readonly name = 'ExchangeError'
  readonly reason: CutoffReason | 'failed'
  /** False: not one byte of the request was written, so the server cannot have acted on it. */
  readonly wasSent: boolean

  constructor(reason: CutoffReason | 'failed', wasSent: boolean, cause: unknown) {
    super(reason, { cause })
    this.reason = reason
    this.wasSent = wasSent
  }
}

export interface Head {
  status: number
  headers: IncomingHttpHeaders
}

/** Where the parts of a reply go. After `end` or `fail` nothing follows. */
export interface Receiver {
  head(head: Head): void
  data(chunk: Buffer): void
  end(): void
  fail(error: ExchangeError): void
}

/**
 * One HTTP request and its reply. This sits on undici's dispatch interface, not on its `request`, for the one fact that
 * only this interface tells: whether the request had begun to be written when things went wrong.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #receiver: Receiver
  #controller: Dispatcher.DispatchController | undefined
  #isOver = false

  constructor(receiver: Receiver) {
    this.#receiver = receiver
  }

  start(dispatcher: Dispatcher, request: HttpRequest, cutoff: Cutoff): void {
    cutoff.onEnd((reason) => this.#fail(reason, undefined))
    // The patience may have ended before it was asked for.
    if (!this.#isOver) dispatcher.dispatch(request, this)
  }

  /** Stops reading from the connection until {@link resume}, which makes the server wait. */
  pause(): void {
    this.#controller?.pause()
  }

  resume(): void {
    this.#controller?.resume()
  }

  /** Ends the exchange and its connection; the receiver hears nothing more. */
  cancel(): void {
    this.#isOver = true
    this.#controller?.abort(new ExchangeError('aborted', true, undefined))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It was given up while it waited for a connection. Throwing here, unlike aborting, leaves the connection unused
    // and intact for the next request.
    if (this.#isOver) throw new ExchangeError('aborted', false, undefined)
    this.#controller = controller
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (!this.#isOver && status >= 200) this.#receiver.head({ status, headers })
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isOver) this.#receiver.data(chunk)
  }

  onResponseEnd(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#receiver.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail('failed', error)
  }

  #fail(reason: CutoffReason | 'failed', cause: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    const error = new ExchangeError(reason, this.#controller !== undefined, cause)
    if (reason !== 'failed') this.#controller?.abort(error)
    this.#receiver.fail(error)
  }
}

export interface Reply extends Head {
  body: Buffer
}

/** Sends a request and collects the whole reply; rejects with an {@link ExchangeError}. */
export function exchange(dispatcher: Dispatcher, request: HttpRequest, cutoff: Cutoff): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let head: Head | undefined
    const chunks: Buffer[] = []
    const receiver: Receiver = {
      head: (received) => void (head = received),
      data: (chunk) => void chunks.push(chunk),
      end: () => resolve({ ...head!, body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) }),
      fail: reject,
    }
    new Exchange(receiver).start(dispatcher, request, cutoff)
  })
}
