import { secrets, type Secret } from '../src/api/core.ts'
import type { KubeClient } from '../src/kube/client.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { isMatchingPair, isValidAt, parseCertificate, type KeyPair } from './pem.ts'

/** The authorities that all replicas share. */
export interface AuthorityState {
  /** Signs serving certificates. */
  readonly current?: KeyPair
  /** Takes over when every API server trusts it. */
  readonly next?: KeyPair
  /** Certificates of authorities that were `current`; trusted until `retireAt` (milliseconds), then forgotten. */
  readonly previous?: { readonly cert: string; readonly retireAt: number }
}

/** The state as it was read, with what a write needs to prove that nothing happened in between. */
export interface StoredState {
  readonly state: AuthorityState
  /** What was found broken, for the log; broken parts are absent from `state`. */
  readonly problems: readonly string[]
  readonly secret: Secret | undefined
}

/** Keeps the state in one Secret. */
export interface AuthorityStore {
  /** `now` decides what is expired. Rejects with a KubeError when the API does not answer. */
  read(now: number): Promise<StoredState>
  /**
   * Writes `state` in place of what was read as `basis`. Resolves false, having written nothing, when another replica
   * was faster: read again.
   */
  write(state: AuthorityState, basis: StoredState): Promise<boolean>
}

const fields = {
  currentCert: 'ca.crt',
  currentKey: 'ca.key',
  nextCert: 'next.crt',
  nextKey: 'next.key',
  previousCert: 'previous.crt',
  previousRetireAt: 'previous.retire-at',
} as const

export function createAuthorityStore(client: KubeClient, namespace: string, name: string): AuthorityStore {
  const ref = { namespace, name }
  return {
    async read(now) {
      const secret = await orAbsent(client.get(secrets, ref))
      return secret ? { ...parseState(secret, now), secret } : { state: {}, problems: [], secret: undefined }
    },
    async write(state, { secret }) {
      const wanted = secretOf(state, secret, ref)
      try {
        if (!secret) await client.create(secrets, wanted)
        else if (isRewritable(secret)) await client.replace(secrets, wanted)
        else await recreate(secret, wanted)
        return true
      } catch (error) {
        if (isKubeError(error, 'AlreadyExists', 'Conflict', 'NotFound')) return false
        throw error
      }
    },
  }

  /** The type and the immutability of a Secret cannot be changed, so it is made anew. */
  async function recreate({ metadata: { uid, resourceVersion } }: Secret, wanted: Secret): Promise<void> {
    await client.delete(secrets, ref, { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) })
    await client.create(secrets, { ...wanted, metadata: ref })
  }
}

function parseState({ data = {} }: Secret, now: number): Pick<StoredState, 'state' | 'problems'> {
  const problems: string[] = []
  const pair = (what: string, certField: string, keyField: string): KeyPair | undefined => {
    const found = { cert: decoded(data[certField]), key: decoded(data[keyField]) }
    if (found.cert === '' && found.key === '') return undefined
    const problem = problemWith(found, now)
    if (problem === undefined) return found
    problems.push(`${what}: ${problem}`)
    return undefined
  }
  const current = pair('current', fields.currentCert, fields.currentKey)
  const next = pair('next', fields.nextCert, fields.nextKey)
  const previousCert = decoded(data[fields.previousCert])
  const retireAt = Date.parse(decoded(data[fields.previousRetireAt]))
  const isPreviousKnown = parseCertificate(previousCert) !== undefined && Number.isFinite(retireAt)
  return {
    state: {
      ...(current && { current }),
      ...(next && { next }),
      ...(isPreviousKnown && { previous: { cert: previousCert, retireAt } }),
    },
    problems,
  }
}

/** Why a pair cannot serve as an authority; undefined when it can. */
function problemWith(pair: KeyPair, now: number): string | undefined {
  const certificate = parseCertificate(pair.cert)
  if (!certificate) return 'the certificate cannot be read'
  if (!certificate.ca) return 'the certificate is not an authority'
  if (!isMatchingPair(pair)) return 'the key does not match the certificate'
  return isValidAt(certificate, now) ? undefined : 'the certificate is not valid at this time'
}

function secretOf(state: AuthorityState, found: Secret | undefined, ref: { namespace: string; name: string }): Secret {
  const { current, next, previous } = state
  const ours = new Set<string>(Object.values(fields))
  // Other keys are someone else's, and stay.
  const kept = Object.entries(found?.data ?? {}).filter(([key]) => !ours.has(key))
  return {
    ...(found && isRewritable(found) ? found : { type: 'Opaque', metadata: ref }),
    apiVersion: 'v1',
    kind: 'Secret',
    data: {
      ...Object.fromEntries(kept),
      ...(current && { [fields.currentCert]: encoded(current.cert), [fields.currentKey]: encoded(current.key) }),
      ...(next && { [fields.nextCert]: encoded(next.cert), [fields.nextKey]: encoded(next.key) }),
      ...(previous && {
        [fields.previousCert]: encoded(previous.cert),
        [fields.previousRetireAt]: encoded(new Date(previous.retireAt).toISOString()),
      }),
    },
  }
}

function isRewritable(secret: Secret): boolean {
  const isImmutable = 'immutable' in secret && secret.immutable === true
  return !isImmutable && (secret.type ?? 'Opaque') === 'Opaque'
}

async function orAbsent<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  }
}

const encoded = (text: string) => Buffer.from(text).toString('base64')
const decoded = (base64: string | undefined) => Buffer.from(base64 ?? '', 'base64').toString('utf8')
