import { generateKeyPair, randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { promisify } from 'node:util'
import { default as forge } from 'node-forge'
import type { KeyPair } from './pem.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** A certificate authority lives a year. */
export const authorityLifeMs = 365 * dayMs
/** A serving certificate lives 30 days. */
export const servingLifeMs = 30 * dayMs
/** Certificates are valid from an hour ago, for API servers whose clocks are behind. */
const backdatedMs = hourMs

/** A new authority with a key, a name and a key identifier of its own, so that verifiers never take it for another. */
export async function createAuthority(now: number): Promise<KeyPair> {
  const { publicKey, privateKey } = await newKey()
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = publicKey
  certificate.serialNumber = serialNumber()
  certificate.validity = { notBefore: new Date(now - backdatedMs), notAfter: new Date(now + authorityLifeMs) }
  const name = [{ name: 'commonName', value: `sandgate CA ${randomBytes(8).toString('hex')}` }]
  certificate.setSubject(name)
  certificate.setIssuer(name)
  certificate.setExtensions([
    { name: 'basicConstraints', critical: true, cA: true, pathLenConstraint: 0 },
    { name: 'keyUsage', critical: true, keyCertSign: true, cRLSign: true, digitalSignature: true },
    { name: 'subjectKeyIdentifier' },
  ])
  certificate.sign(forge.pki.privateKeyFromPem(privateKey), forge.md.sha256.create())
  return { key: privateKey, cert: forge.pki.certificateToPem(certificate) }
}

/**
 * A serving certificate for `hosts` (DNS names and IP addresses), with a new key, signed by `authority`. It lives
 * {@link servingLifeMs}, but never longer than the authority.
 */
export async function signServing(authority: KeyPair, hosts: readonly string[], now: number): Promise<KeyPair> {
  const issuer = forge.pki.certificateFromPem(authority.cert)
  const { publicKey, privateKey } = await newKey()
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = publicKey
  certificate.serialNumber = serialNumber()
  certificate.validity = {
    notBefore: new Date(Math.max(now - backdatedMs, issuer.validity.notBefore.getTime())),
    notAfter: new Date(Math.min(now + servingLifeMs, issuer.validity.notAfter.getTime())),
  }
  // Names of 64 characters and more do not fit a common name, and nobody reads it: clients look at the SANs.
  certificate.setSubject([{ name: 'commonName', value: 'sandgate' }])
  certificate.setIssuer(issuer.subject.attributes)
  certificate.setExtensions([
    { name: 'basicConstraints', critical: true, cA: false },
    { name: 'keyUsage', critical: true, digitalSignature: true, keyEncipherment: true },
    { name: 'extKeyUsage', serverAuth: true },
    { name: 'subjectAltName', altNames: hosts.map(alternativeName) },
    { name: 'subjectKeyIdentifier' },
    { name: 'authorityKeyIdentifier', keyIdentifier: issuer.generateSubjectKeyIdentifier().getBytes() },
  ])
  certificate.sign(forge.pki.privateKeyFromPem(authority.key), forge.md.sha256.create())
  return { key: privateKey, cert: forge.pki.certificateToPem(certificate) }
}

/** The names under which the API server calls a Service, with the one that some clients complete by themselves. */
export function serviceHosts(service: string, namespace: string, clusterDomain: string): string[] {
  const name = `${service}.${namespace}`
  return [`${name}.svc`, `${name}.svc.${clusterDomain}`, name]
}

/** Made by node:crypto on another thread: forge would hold up the event loop for half a second. */
async function newKey() {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return { publicKey: forge.pki.publicKeyFromPem(publicKey), privateKey }
}

/** Random, 16 bytes. The first is between 0x40 and 0x7f, which makes the number positive and its encoding minimal. */
function serialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40
  return bytes.toString('hex')
}

/** RFC 5280 numbers the kinds of names: 2 is a DNS name, 7 an IP address. */
function alternativeName(host: string) {
  return isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host }
}
