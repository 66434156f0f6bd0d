import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'

export interface Target {
  readonly port: number
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string
}

export interface LoadResult {
  /** Of each request, in milliseconds. */
  readonly latenciesMs: readonly number[]
  readonly perSecond: number
}

/**
 * Posts `body` to `path`, `requests` times over so many kept-alive connections, each with one request at a time, and
 * checks that every answer allows. Below HTTP on purpose: an HTTP client in Node costs as much CPU as the server that is
 * to be measured.
 */
export async function load(
  target: Target,
  path: string,
  body: Buffer,
  { connections, requests }: { readonly connections: number; readonly requests: number },
): Promise<LoadResult> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(target)))
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  const message = Buffer.concat([Buffer.from(head), body])
  const latenciesMs: number[] = []
  const startedAt = performance.now()
  try {
    await Promise.all(
      sockets.map(async (socket, index) => {
        const share = Math.floor(requests / connections) + (index < requests % connections ? 1 : 0)
        for (let sent = 0; sent < share; sent++) {
          const sentAt = performance.now()
          check(await exchange(socket, message))
          latenciesMs.push(performance.now() - sentAt)
        }
      }),
    )
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  return { latenciesMs, perSecond: (requests / (performance.now() - startedAt)) * 1000 }
}

async function open({ port, ca }: Target): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, ca })
  socket.setNoDelay(true)
  await once(socket, 'secureConnect')
  return socket
}

/** Sends one request and resolves with the whole of its answer. */
function exchange(socket: TLSSocket, message: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (!isComplete(text)) return
      leave()
      resolve(text)
    }
    const onClose = () => (leave(), reject(new Error('the server closed a connection that was in use')))
    const leave = () => (socket.off('data', onData), socket.off('close', onClose))
    socket.on('data', onData)
    socket.on('close', onClose)
    socket.write(message)
  })
}

function isComplete(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(text) ?? []
  if (length === undefined) throw new Error('the answer does not say how long it is')
  return text.length >= end + 4 + Number(length)
}

function check(answer: string): void {
  if (!answer.startsWith('HTTP/1.1 200') || !answer.includes('"allowed":true'))
    throw new Error(`the server did not allow what it should: ${answer}`)
}
