import type { X509Certificate } from 'node:crypto'
import { certificatesIn, isTrusted, isValidAt, parseCertificate, renewalTime, type KeyPair } from './pem.ts'
import { servingLifeMs } from './authority.ts'
import type { AuthorityState } from './store.ts'

/** After `next` was read back from every caBundle: what other API servers' caches may take to hold it too. */
export const settleMs = 60_000
/** What an old authority stays trusted for beyond the life of the last certificate that it signed. */
export const retireMarginMs = 86_400_000

export interface RotationView {
  /** Milliseconds since the epoch. */
  readonly now: number
  /** The usable parts of what the Secret holds, just read. */
  readonly stored: AuthorityState
  /** What this replica last read from it and still has in memory. */
  readonly remembered: AuthorityState
  /** Fingerprints in the caBundle of each webhook, just read. */
  readonly bundles: readonly ReadonlySet<string>[]
  /** For how long `next` has been seen in every bundle without a break; 0 when it has just appeared. */
  readonly nextPublishedForMs: number
}

/** The next thing to do. After each, everything is read and planned again. */
export type RotationPlan =
  | { readonly kind: 'write'; readonly state: AuthorityState; readonly because: 'restored' | 'promoted' }
  /** Make an authority and store it as `next`. */
  | { readonly kind: 'introduce'; readonly because: 'there is none' | 'the current one ages' }
  /** Add these PEM certificates to every bundle that lacks one. */
  | { readonly kind: 'publish'; readonly certificates: readonly string[] }
  | { readonly kind: 'wait'; readonly forMs: number }
  /** Take these out of the bundles, then store `state`. */
  | { readonly kind: 'retire'; readonly certificates: readonly string[]; readonly state: AuthorityState }
  | { readonly kind: 'settled' }

/**
 * Decides how the authorities go on, so that at no moment a served certificate comes from an authority that some API
 * server does not trust yet or any more:
 *
 * 1. `current` is lost, but this replica remembers it → put it back.
 * 2. There is neither `current` nor `next` → introduce one.
 * 3. `current` is past two thirds of its life and there is no `next` → introduce one.
 * 4. An authority in use is missing from a bundle → publish.
 * 5. `next` is there: with no `current` and no other authority in any bundle nobody can be cut off → promote at once
 *    (a fresh install); otherwise wait until it has been published for {@link settleMs}, then promote. The wait is also
 *    what gives a replica that remembers a lost `current` the time for step 1.
 * 6. Every certificate of the previous authorities has expired → retire them.
 */
export function planRotation({ now, stored, remembered, bundles, nextPublishedForMs }: RotationView): RotationPlan {
  const { current, next, previous } = stored
  if (!current && remembered.current && isUsable(remembered.current, now)) {
    return { kind: 'write', state: { ...remembered, ...stored, current: remembered.current }, because: 'restored' }
  }
  if (!current && !next) return { kind: 'introduce', because: 'there is none' }
  if (current && !next && isAgeing(current, now)) return { kind: 'introduce', because: 'the current one ages' }

  const isRetired = previous !== undefined && previous.retireAt <= now
  const inUse = [current?.cert, next?.cert, isRetired ? undefined : previous?.cert].filter((pem) => pem !== undefined)
  const trusted = inUse.flatMap(fingerprintsIn)
  if (bundles.some((bundle) => trusted.some((fingerprint) => !bundle.has(fingerprint)))) {
    return { kind: 'publish', certificates: inUse }
  }
  if (next) {
    const isFirst = !current && !previous && bundles.every((bundle) => bundle.size === 1)
    if (!isFirst && nextPublishedForMs < settleMs) return { kind: 'wait', forMs: settleMs - nextPublishedForMs }
    return { kind: 'write', state: promoted(stored, next, now), because: 'promoted' }
  }
  if (isRetired) return { kind: 'retire', certificates: [previous.cert], state: { ...(current && { current }) } }
  return { kind: 'settled' }
}

/**
 * Whether the certificate served must be made anew: two thirds of its life are over, or some caBundle no longer vouches
 * for it. An authority that vanished from the Secret alone is no reason: nobody takes it out of the bundles.
 */
export function isServingDue(
  served: X509Certificate,
  bundles: readonly (readonly X509Certificate[])[],
  now: number,
): boolean {
  return now >= renewalTime(served) || bundles.some((bundle) => !isTrusted(served, bundle, now))
}

function promoted({ current, previous }: AuthorityState, next: KeyPair, now: number): AuthorityState {
  const former = [current?.cert, previous?.cert].filter((pem) => pem !== undefined).join('')
  if (former === '') return { current: next }
  return { current: next, previous: { cert: former, retireAt: now + servingLifeMs + retireMarginMs } }
}

function isUsable({ cert }: KeyPair, now: number): boolean {
  const certificate = parseCertificate(cert)
  return certificate !== undefined && isValidAt(certificate, now)
}

function isAgeing({ cert }: KeyPair, now: number): boolean {
  const certificate = parseCertificate(cert)
  return certificate !== undefined && now >= renewalTime(certificate)
}

function fingerprintsIn(pem: string): string[] {
  return certificatesIn(pem).map(({ fingerprint256 }) => fingerprint256)
}
