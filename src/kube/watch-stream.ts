import type { Dispatcher } from 'undici'
import type { WatchEvent } from './client.ts'
import type { Cutoff } from './cutoff.ts'
import { Exchange, ExchangeError } from './exchange.ts'
import type { Head, HttpRequest } from './exchange.ts'
import type { KubeObject } from './object.ts'

/**
 * Bytes that may wait unread before the server is made to wait. A busy handler must not let a burst of events pile up
 * in memory; a few megabytes hold the largest single event (etcd takes 1.5 MB) with room to spare.
 */
const highWaterBytes = 4 * 1024 * 1024

/** What a body needs of the exchange that it arrives through. */
type Tap = Pick<Exchange, 'pause' | 'resume' | 'cancel'>

/** The chunks of a reply's body, read by one reader while they arrive. */
export class StreamedBody {
  readonly #chunks: Buffer[] = []
  #waitingBytes = 0
  #outcome: { error?: ExchangeError } | undefined
  #wake: (() => void) | undefined
  #exchange: Tap | undefined

  attach(exchange: Tap): void {
    this.#exchange = exchange
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#waitingBytes += chunk.length
    if (this.#waitingBytes > highWaterBytes) this.#exchange?.pause()
    this.#wake?.()
  }

  finish(error?: ExchangeError): void {
    this.#outcome = error === undefined ? {} : { error }
    this.#wake?.()
  }

  cancel(): void {
    this.#exchange?.cancel()
    this.finish()
  }

  /** All that has arrived since the last call, waiting for something to arrive; undefined at the end. */
  async next(): Promise<Buffer[] | undefined> {
    for (;;) {
      if (this.#chunks.length > 0) {
        const chunks = this.#chunks.splice(0)
        this.#waitingBytes = 0
        this.#exchange?.resume()
        return chunks
      }
      if (this.#outcome?.error) throw this.#outcome.error
      if (this.#outcome) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
  }
}

export interface StreamedReply extends Head {
  body: StreamedBody
}

/** Sends a request and resolves when the reply begins; rejects with an `ExchangeError`. */
export function openStream(dispatcher: Dispatcher, request: HttpRequest, cutoff: Cutoff): Promise<StreamedReply> {
  return new Promise((resolve, reject) => {
    const body = new StreamedBody()
    const exchange = new Exchange({
      head: (head) => resolve({ ...head, body }),
      data: (chunk) => body.push(chunk),
      end: () => body.finish(),
      fail: (error) => {
        reject(error)
        body.finish(error)
      },
    })
    body.attach(exchange)
    exchange.start(dispatcher, request, cutoff)
  })
}

/** Everything that is left of a body. */
export async function readAll(body: StreamedBody): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let chunks = await body.next(); chunks !== undefined; chunks = await body.next()) parts.push(...chunks)
  return Buffer.concat(parts)
}

const newline = 0x0a

/**
 * The events of a watch: one JSON object a line. Lines are put together as bytes and decoded whole, since a chunk may
 * end within a character. Leaving the loop early closes the connection.
 */
export async function* watchEvents<T extends KubeObject>(body: StreamedBody): AsyncGenerator<WatchEvent<T>> {
  let unfinished: Buffer[] = []
  try {
    for (let chunks = await body.next(); chunks !== undefined; chunks = await body.next()) {
      for (const chunk of chunks) {
        let start = 0
        for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
          unfinished.push(chunk.subarray(start, end))
          start = end + 1
          const line = unfinished.length === 1 ? unfinished[0]! : Buffer.concat(unfinished)
          unfinished = []
          if (line.length > 0) yield parseEvent<T>(line)
        }
        if (start < chunk.length) unfinished.push(chunk.subarray(start))
      }
    }
    if (unfinished.length > 0) throw brokenOff('the watch ended within an event')
  } finally {
    body.cancel()
  }
}

function parseEvent<T extends KubeObject>(line: Buffer): WatchEvent<T> {
  try {
    return JSON.parse(line.toString()) as WatchEvent<T>
  } catch {
    // The parser's own message quotes the line, which may hold a Secret.
    throw brokenOff('the watch sent a line that is not JSON')
  }
}

function brokenOff(explanation: string): ExchangeError {
  return new ExchangeError('failed', true, new Error(explanation))
}
