import { Agent, ProxyAgent } from 'undici'
import type { Dispatcher } from 'undici'
import type { ClusterAccess, TlsMaterial } from './config.ts'

/**
 * Sockets for ordinary requests, and so requests in flight: enough to keep an API server busy (more only wait there
 * instead of here), well below the 200 writes in flight that it admits from all its clients together.
 */
const defaultConnections = 64

/** A connection that cannot be made in this time will not be made within a write's deadline either. */
const connectTimeoutMs = 5_000

/**
 * Idle connections are closed from this side first: the API server closes them after 90 s, load balancers often after
 * 60 s, and a request written into a connection that the other side is closing has an unknown outcome.
 */
const keepAliveMs = 45_000

/** TCP probes that find a peer that vanished without a word; client-go's interval. */
const probeIntervalMs = 30_000

/** The connections made with one set of TLS material. */
export interface Connections {
  readonly tls: TlsMaterial
  readonly requests: Dispatcher
  /** Without a bound and apart from the others: a hundred open watches take no connection from a write. */
  readonly watches: Dispatcher
}

export function openConnections(access: ClusterAccess, tls: TlsMaterial, limit = defaultConnections): Connections {
  return { tls, requests: createDispatcher(access, tls, limit), watches: createDispatcher(access, tls, null) }
}

function createDispatcher(access: ClusterAccess, tls: TlsMaterial, connections: number | null): Dispatcher {
  const connect = {
    ...tls,
    timeout: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelay: probeIntervalMs,
  }
  const options = {
    connections,
    // One request at a time on a connection. With HTTP/2 one lost connection would break every watch and write at once.
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    // Deadlines are kept by the client, over the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
  }
  if (access.proxyUrl === undefined) return new Agent({ ...options, connect })
  return new ProxyAgent({ ...options, uri: access.proxyUrl, requestTls: { ...connect, allowH2: false } })
}
