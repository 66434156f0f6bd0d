import type { RequestOptions } from 'node:https'
import { createSecureContext } from 'node:tls'
import type { Clock } from '../runtime/clock.ts'
import { KubeConfigError } from './config-error.ts'
import { readText } from './kubeconfig-file.ts'
import type { LoadedConfig } from './kubeconfig-file.ts'

/** TLS options of a connection, under the names that `node:tls` gives them. */
export interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** What identifies this process to the server at one time. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>
  /** The same object for as long as its content is the same. */
  readonly tls: TlsMaterial
}

/**
 * Half of the minute within which client-go picks up a rotated token. Kubernetes replaces a projected token when a
 * fifth of its life is left, at the least two minutes before it ends.
 */
const rereadAfterMs = 30_000

/** A server that refuses everyone must not have a credential plugin started for each request. */
const minReloadIntervalMs = 1_000

/** Keeps one identity current. */
export class CredentialSource {
  readonly #reload: () => LoadedConfig
  readonly #clock: Clock
  #loaded: LoadedConfig
  #current: Credentials | undefined
  #readAt = -Infinity
  #reloadedAt = -Infinity
  #reading: Promise<Credentials> | undefined

  constructor(loaded: LoadedConfig, reload: () => LoadedConfig, clock: Clock) {
    this.#loaded = loaded
    this.#reload = reload
    this.#clock = clock
  }

  /** See `ClusterAccess.credentials`. */
  async credentials(refused?: Credentials): Promise<Credentials> {
    const now = this.#clock.monotonic()
    if (refused !== undefined && refused === this.#current) {
      if (this.#reading) return await this.#reading
      if (now - this.#reloadedAt >= minReloadIntervalMs) {
        this.#reloadedAt = now
        return await this.#read(true)
      }
    }
    if (this.#current && now - this.#readAt < rereadAfterMs) return this.#current
    try {
      return await this.#read(false)
    } catch (error) {
      // What there is may still be good; if it is not, the server says so, and then the trouble is reported.
      if (this.#current) return this.#current
      throw error
    }
  }

  /** One reading at a time, for all who ask meanwhile. */
  async #read(fromScratch: boolean): Promise<Credentials> {
    this.#reading ??= this.#readNow(fromScratch).finally(() => (this.#reading = undefined))
    return await this.#reading
  }

  async #readNow(fromScratch: boolean): Promise<Credentials> {
    this.#readAt = this.#clock.monotonic()
    // Everything anew: the file may have been rewritten, and plugins keep what they once got until its stated end.
    if (fromScratch) this.#loaded = this.#reload()
    const read = await readCredentials(this.#loaded)
    const tls = this.#current && isSameTls(this.#current.tls, read.tls) ? this.#current.tls : read.tls
    this.#current = { headers: read.headers, tls }
    return this.#current
  }
}

async function readCredentials({ config, origin, tokenFile }: LoadedConfig): Promise<Credentials> {
  const options: RequestOptions = { headers: {} }
  try {
    await config.applyToHTTPSOptions(options)
  } catch (cause) {
    throw new KubeConfigError('CredentialsFailed', `${origin}: ${explainFailure(cause)}`, undefined)
  }
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value).trim()
  if (tokenFile) headers['authorization'] = `Bearer ${readText(tokenFile).trim()}`
  else if (options.auth) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
  return { headers, tls: tlsOf(options) }
}

function tlsOf(options: RequestOptions): TlsMaterial {
  const { ca, cert, key, servername, rejectUnauthorized } = options
  return {
    // client-node gives the content of files as buffers and what a plugin printed as text.
    ...(ca && { ca: (ca as Buffer | string).toString() }),
    ...(cert && { cert: (cert as Buffer | string).toString() }),
    ...(key && { key: (key as Buffer | string).toString() }),
    ...(servername && { servername }),
    ...(rejectUnauthorized === false && { rejectUnauthorized }),
  }
}

function isSameTls(one: TlsMaterial, other: TlsMaterial): boolean {
  return (
    one.ca === other.ca &&
    one.cert === other.cert &&
    one.key === other.key &&
    one.servername === other.servername &&
    one.rejectUnauthorized === other.rejectUnauthorized
  )
}

/** The first line that a plugin wrote; never the parser's words on its output, since they quote the token. */
function explainFailure(cause: unknown): string {
  if (cause instanceof SyntaxError) return 'the credential plugin did not print an ExecCredential'
  const [line = ''] = cause instanceof Error ? cause.message.trim().split('\n') : []
  return `no credentials: ${line || 'the credential plugin failed without a word'}`
}

/**
 * Reads the certificates and keys that a configuration names, so that a mistake is told at the start and by its file.
 *
 * @throws {KubeConfigError}
 */
export function validateTls({ config, origin }: LoadedConfig): void {
  const cluster = config.getCurrentCluster()
  const user = config.getCurrentUser()
  const ca = pem(cluster?.caFile, cluster?.caData, 'certificate-authority', origin)
  const cert = pem(user?.certFile, user?.certData, 'client-certificate', origin)
  const key = pem(user?.keyFile, user?.keyData, 'client-key', origin)
  if ((cert === undefined) !== (key === undefined)) {
    const missing = cert === undefined ? 'client-certificate' : 'client-key'
    throw new KubeConfigError('InvalidTls', `${origin}: user ${JSON.stringify(user?.name)} has no ${missing}`)
  }
  try {
    createSecureContext({ ca, cert, key })
  } catch (cause) {
    const detail = (cause as NodeJS.ErrnoException).code ?? 'unknown'
    throw new KubeConfigError('InvalidTls', `${origin}: certificates or key cannot be used (${detail})`, cause)
  }
}

function pem(file: string | undefined, data: string | undefined, what: string, origin: string): string | undefined {
  if (!file && !data) return undefined
  const text = file ? readText(file) : Buffer.from(data!, 'base64').toString()
  if (text.includes('-----BEGIN ')) return text
  const where = file ?? `${origin}: ${what}-data`
  throw new KubeConfigError('InvalidTls', `${where}: not a PEM ${what}`)
}
