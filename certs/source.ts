import type { KeyPair } from './pem.ts'

/** Whether what is served can be trusted by those who call, and if not, why. */
export interface CertificateState {
  readonly isReady: boolean
  /** One clause, for `/readyz?verbose`. */
  readonly because: string
}

/** Where a server gets its certificate from, now and when it changes. */
export interface CertificateSource {
  /** Undefined until there is one. Always a pair that matches. */
  readonly current: KeyPair | undefined
  readonly state: CertificateState
  /** Called with each new pair, from then on. */
  onChange(handler: (pair: KeyPair) => void): void
  /** When what is known expires, in milliseconds since the epoch. */
  expiries(): readonly { readonly what: string; readonly at: number }[]
  /** Keeps the certificate up to date until `signal` ends. Never rejects. */
  run(signal: AbortSignal): Promise<void>
}
