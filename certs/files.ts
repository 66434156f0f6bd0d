import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Clock } from '../src/runtime/clock.ts'
import { isMatchingPair, isValidAt, parseCertificate, type KeyPair } from './pem.ts'
import type { CertificateSource } from './source.ts'

export interface FileCertificatesOptions {
  /** Holds `tls.crt` and `tls.key`, as a mounted TLS Secret does. */
  readonly directory: string
  readonly clock: Clock
  readonly log: Logger
}

/** Watches get lost (a directory that is replaced, a file system without them), so the files are also read regularly. */
const rereadMs = 10_000

/** A certificate source that somebody else keeps up to date, e.g. cert-manager; the caBundles are theirs as well. */
export interface FileCertificates extends CertificateSource {
  /** Reads the files and takes over a new pair that matches. Never rejects. */
  read(): Promise<void>
}

export function createFileCertificates({ directory, clock, log }: FileCertificatesOptions): FileCertificates {
  const handlers: ((pair: KeyPair) => void)[] = []
  let current: KeyPair | undefined
  let problem: string | undefined = 'not read yet'

  /** Two files cannot be replaced at once, so for a moment they may not match: the pair at hand stays. */
  async function read(): Promise<void> {
    try {
      const [cert, key] = await Promise.all([
        readFile(join(directory, 'tls.crt'), 'utf8'),
        readFile(join(directory, 'tls.key'), 'utf8'),
      ])
      const pair = { cert, key }
      problem = isMatchingPair(pair) ? undefined : 'tls.crt and tls.key do not match'
      if (problem !== undefined || (current?.cert === cert && current.key === key)) return
      current = pair
    } catch (error) {
      problem = `the files cannot be read (${String((error as NodeJS.ErrnoException).code)})`
      return
    }
    log.info({ directory, until: parseCertificate(current.cert)?.validTo }, 'a serving certificate was read')
    for (const handler of handlers) handler(current)
  }

  return {
    get current() {
      return current
    },
    get state() {
      const certificate = current && parseCertificate(current.cert)
      if (!certificate) return { isReady: false, because: problem ?? 'not read yet' }
      if (!isValidAt(certificate, clock.now())) return { isReady: false, because: 'it is not valid at this time' }
      return { isReady: true, because: problem === undefined ? 'it is valid' : `it is valid, but ${problem}` }
    },
    onChange: (handler) => void handlers.push(handler),
    expiries() {
      const certificate = current && parseCertificate(current.cert)
      return certificate ? [{ what: 'serving', at: certificate.validToDate.getTime() }] : []
    },
    read,
    async run(signal) {
      let poke = new AbortController()
      const unwatch = watchDirectory(directory, () => poke.abort())
      while (!signal.aborted) {
        poke = new AbortController()
        await read()
        await clock.sleep(rereadMs, AbortSignal.any([signal, poke.signal]))
      }
      unwatch()
    },
  }
}

/** Calls `onChange` when something in the directory changes, as far as the system tells. Returns how to stop. */
function watchDirectory(directory: string, onChange: () => void): () => void {
  try {
    const watcher = watch(directory, { persistent: false }, onChange)
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => undefined
  }
}
