import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { secrets, type Secret } from '../api/core.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import type { OriginKey, OriginKeys } from '../planning/origin.ts'
import type { Clock } from '../runtime/clock.ts'

/** In the namespace that sandgate itself runs in. */
export const originKeysSecret = 'sandgate-origin-keys'

/**
 * A key signs for 30 days and is accepted for 30 more. Stock that outlives both is replaced like stale stock, so a
 * shorter time would replace good sandboxes.
 */
const rotateAfterMs = 30 * 24 * 60 * 60_000
/** How often the Secret is read again: what another replica, or a person, has done to it is known within this time. */
const refreshMs = 60_000
/** As long as the output of SHA-256, which is what HMAC makes of a longer key. */
const secretBytes = 32

export interface OriginKeyringOptions {
  readonly client: KubeClient
  /** Our own namespace. */
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
  /** Fresh random bytes; a parameter for tests. */
  readonly random?: (size: number) => Uint8Array
}

export interface OriginKeyring {
  /** The keys in force; the same object until they change. Throws before `load` has resolved once. */
  keys(): OriginKeys
  /** Calls back after other keys have come into force: what was judged by the old ones is to be judged again. */
  onChange(listener: () => void): void
  /** Reads the keys, and makes or repairs what is missing. Rejects with a `KubeError` when the API server does not let it. */
  load(signal?: AbortSignal): Promise<void>
  /** Loads again every minute, and rotates when it is time, until the signal ends. Never rejects. */
  run(signal: AbortSignal): Promise<void>
}

interface StoredKey extends OriginKey {
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

interface StoredKeys extends OriginKeys {
  readonly current: StoredKey
  readonly previous?: StoredKey
}

/** The keys that prove what the controllers made, shared by all replicas through one Secret. */
export function createOriginKeyring(options: OriginKeyringOptions): OriginKeyring {
  const { client, namespace, clock, log, random = randomBytes } = options
  const ref = { namespace, name: originKeysSecret }
  const listeners: (() => void)[] = []
  let inForce: StoredKeys | undefined

  const load = async (signal?: AbortSignal): Promise<void> => {
    const secret = await read(signal)
    const stored = secret && parseKeys(secret)
    const wanted = wantedKeys(stored)
    // Another replica may write at the same moment: the one that comes second takes what the first has written.
    const written = wanted === stored ? wanted : await write(wanted, secret)
    if (isSame(inForce, written)) return
    inForce = written
    for (const listener of listeners) listener()
  }

  const read = async (signal?: AbortSignal): Promise<Secret | undefined> => {
    try {
      return await client.get(secrets, ref, signal ? { signal } : {})
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return undefined
      throw error
    }
  }

  const wantedKeys = (stored: StoredKeys | undefined): StoredKeys => {
    // A Secret that was emptied or removed by hand gets back what we know; only when nobody knows is a key made anew.
    const known = stored ?? inForce
    if (!known) return { current: newKey() }
    if (clock.now() - known.current.createdAt < rotateAfterMs) return known
    log.info({ secret: ref, previous: known.current.id }, 'rotating the origin keys')
    return { current: newKey(), previous: known.current }
  }

  const write = async (keys: StoredKeys, existing: Secret | undefined): Promise<StoredKeys> => {
    try {
      if (existing) await client.replace(secrets, { ...existing, data: encodeKeys(keys) })
      else await client.create(secrets, newSecret(keys))
      return keys
    } catch (error) {
      if (existing && isKubeError(error, 'Invalid')) return writeAnew(keys, existing)
      if (!isKubeError(error, 'AlreadyExists', 'Conflict', 'OutcomeUnknown')) throw error
      const theirs = await read()
      const stored = theirs && parseKeys(theirs)
      if (!stored) throw error
      return stored
    }
  }

  /** A Secret that was made immutable takes no change. */
  const writeAnew = async (keys: StoredKeys, { metadata: { uid } }: Secret): Promise<StoredKeys> => {
    await client.delete(secrets, ref, uid === undefined ? {} : { uid })
    return write(keys, undefined)
  }

  const newSecret = (keys: StoredKeys): Secret => ({ metadata: ref, type: 'Opaque', data: encodeKeys(keys) })

  const newKey = (): StoredKey => ({
    id: Buffer.from(random(4)).toString('hex'),
    secret: random(secretBytes),
    createdAt: clock.now(),
  })

  return {
    keys() {
      if (!inForce) throw new Error('the origin keys have not been loaded')
      return inForce
    },
    onChange: (listener) => void listeners.push(listener),
    load,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(refreshMs, signal)
        if (signal.aborted) return
        await load(signal).catch((err: unknown) => log.warn({ secret: ref, err }, 'could not refresh the origin keys'))
      }
    },
  }
}

function encodeKeys({ current, previous }: StoredKeys): Record<string, string> {
  return { current: encodeKey(current), ...(previous && { previous: encodeKey(previous) }) }
}

function encodeKey({ id, secret, createdAt }: StoredKey): string {
  return toBase64(JSON.stringify({ id, createdAt, secret: Buffer.from(secret).toString('base64') }))
}

/** What the Secret holds, or undefined when its current key cannot be read. A broken previous key is left out. */
function parseKeys({ data }: Secret): StoredKeys | undefined {
  const current = parseKey(data?.['current'])
  const previous = parseKey(data?.['previous'])
  return current && { current, ...(previous && { previous }) }
}

function parseKey(encoded: string | undefined): StoredKey | undefined {
  if (encoded === undefined) return undefined
  try {
    const { id, secret, createdAt } = JSON.parse(Buffer.from(encoded, 'base64').toString('utf8')) as Partial<
      Record<string, unknown>
    >
    if (typeof id !== 'string' || !/^\w+$/.test(id) || typeof secret !== 'string' || typeof createdAt !== 'number') {
      return undefined
    }
    const bytes = Buffer.from(secret, 'base64')
    return bytes.length === secretBytes ? { id, secret: bytes, createdAt } : undefined
  } catch {
    return undefined
  }
}

function isSame(a: StoredKeys | undefined, b: StoredKeys): boolean {
  return a !== undefined && JSON.stringify(encodeKeys(a)) === JSON.stringify(encodeKeys(b))
}

function toBase64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64')
}
