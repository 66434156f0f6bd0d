import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { Clock } from '../runtime/clock.ts'

/** What answers at an address. */
export type Served =
  | { readonly kind: 'served'; readonly certificate: X509Certificate }
  | { readonly kind: 'unreachable'; readonly because: string }

const patienceMs = 3000

/** Where the API server finds a webhook. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

export function endpointName({ host, port }: Endpoint): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/**
 * The certificate that is served at an endpoint, whoever signed it. Never rejects: a Service's name means nothing
 * outside the cluster, and that is worth a line and no more.
 */
export async function servedAt({ host, port }: Endpoint, clock: Clock): Promise<Served> {
  const { promise, resolve } = Promise.withResolvers<Served>()
  const unreachable = (because: string) => resolve({ kind: 'unreachable', because })
  // Nothing is sent: the handshake alone shows the certificate, and whether it is to be trusted is judged by the caller.
  const socket = connect({ host, port, rejectUnauthorized: false, ...(isIP(host) === 0 && { servername: host }) })
  const timer = clock.setTimer(() => unreachable('no answer in time'), patienceMs)
  socket.once('secureConnect', () => {
    const { raw } = socket.getPeerCertificate()
    if (raw) resolve({ kind: 'served', certificate: new X509Certificate(raw) })
    else unreachable('it shows no certificate')
  })
  socket.once('error', (error: NodeJS.ErrnoException) => unreachable(reasonOf(error)))
  const served = await promise
  timer.cancel()
  socket.destroy()
  return served
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the name is not known here; run this in the cluster to see it'
    case 'ECONNREFUSED':
      return 'nothing listens there'
    default:
      return message
  }
}
