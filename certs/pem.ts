import { createPrivateKey, X509Certificate } from 'node:crypto'

/** A private key with the certificate for its public half, both PEM. */
export interface KeyPair {
  readonly key: string
  readonly cert: string
}

const certificateBlock = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** The certificates in a PEM text. Blocks that are none are passed over, as the API server does with a caBundle. */
export function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(certificateBlock) ?? []).flatMap((block) => parseCertificate(block) ?? [])
}

/** The first certificate of a PEM text; undefined when there is none or it cannot be read. */
export function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

/** Whether the key belongs to the certificate. Node's TLS takes a pair that does not match, and fails each handshake. */
export function isMatchingPair({ key, cert }: KeyPair): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}

/** Whether `now`, in milliseconds, lies within the certificate's life. */
export function isValidAt(certificate: X509Certificate, now: number): boolean {
  return certificate.validFromDate.getTime() <= now && now < certificate.validToDate.getTime()
}

/** When two thirds of the certificate's life are over, in milliseconds: the time to renew it. */
export function renewalTime({ validFromDate, validToDate }: X509Certificate): number {
  return validFromDate.getTime() + ((validToDate.getTime() - validFromDate.getTime()) * 2) / 3
}

/** Whether a client that trusts `trusted` accepts `leaf` at the time `now`. Names are not looked at. */
export function isTrusted(leaf: X509Certificate, trusted: readonly X509Certificate[], now: number): boolean {
  return (
    isValidAt(leaf, now) &&
    trusted.some((ca) => isValidAt(ca, now) && leaf.checkIssued(ca) && leaf.verify(ca.publicKey))
  )
}
