import { Agent, request } from 'undici'
import type { Identity } from './credentials.ts'
import { DevclusterError } from './error.ts'

/**
 * The few requests that run a control plane before any client can: is it ready, label its namespaces, give out a
 * token. Everything else goes through `KubeClient`.
 */
export interface AdminApi {
  /** True when the server answers 200; false when it answers otherwise or not at all. */
  answers(path: string): Promise<boolean>
  text(path: string): Promise<string>
  /** @throws DevclusterError `RequestFailed` on any status from 400 up. */
  send<Reply>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<Reply>
  close(): Promise<void>
}

/** Speaks to the API server at `url` with a client certificate. */
export function createAdminApi(url: URL, caCertificate: string, identity: Identity): AdminApi {
  const dispatcher = new Agent({
    connect: { ca: caCertificate, cert: identity.certificate, key: identity.key },
    connections: 4,
    headersTimeout: 15_000,
  })
  const call = async (method: 'GET' | 'POST' | 'PATCH', path: string, body?: object) =>
    request(new URL(path, url), {
      dispatcher,
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': contentTypes[method] } }),
    })

  return {
    async answers(path) {
      try {
        const reply = await call('GET', path)
        await reply.body.dump()
        return reply.statusCode === 200
      } catch {
        return false
      }
    },
    async text(path) {
      const reply = await call('GET', path)
      return reply.body.text()
    },
    async send<Reply>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object) {
      const reply = await call(method, path, body)
      const text = await reply.body.text()
      if (reply.statusCode >= 400) {
        throw new DevclusterError('RequestFailed', `${method} ${path}: ${reply.statusCode} ${text}`)
      }
      return JSON.parse(text) as Reply
    },
    close: () => dispatcher.destroy(),
  }
}

/** PATCH is a server-side apply: it makes what is not there and leaves the fields of others alone. */
const contentTypes = { GET: '', POST: 'application/json', PATCH: 'application/apply-patch+yaml' } as const
