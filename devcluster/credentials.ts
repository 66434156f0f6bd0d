import { generateKeyPair, type KeyObject, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import forge from 'node-forge'
import { stringify } from 'yaml'

const generate = promisify(generateKeyPair)

/** A certificate with its private key, both PEM. */
export interface Identity {
  readonly certificate: string
  readonly key: string
}

/** Everything that proves who is who in one control plane. PEM throughout. */
export interface Credentials {
  readonly caCertificate: string
  readonly apiServer: Identity
  /** In `system:masters`: RBAC does not apply to it. */
  readonly admin: Identity
  readonly controllerManager: Identity
  readonly scheduler: Identity
  /** Signs service account tokens. */
  readonly serviceAccountKey: string
}

interface Subject {
  readonly commonName: string
  readonly organization?: string
}

interface Signer {
  readonly subject: forge.pki.CertificateField[]
  readonly key: forge.pki.rsa.PrivateKey
}

/** Makes a throw-away authority and what it signs: valid for a year from an hour ago, on 127.0.0.1. */
export async function createCredentials(serviceAddress: string): Promise<Credentials> {
  // Key generation is the slow step, so: side by side, off this thread, and one key for all clients — their files
  // lie in one folder that only this user can read.
  const [caKey, serverKey, clientKey, serviceAccountKey] = await Promise.all([
    generate('rsa', { modulusLength: 2048 }),
    generate('rsa', { modulusLength: 2048 }),
    generate('rsa', { modulusLength: 2048 }),
    generate('ec', { namedCurve: 'P-256' }),
  ])
  const authority = { commonName: 'sandgate-devcluster' }
  const signer = { subject: fieldsOf(authority), key: forge.pki.privateKeyFromPem(pem(caKey.privateKey)) }
  const client = (subject: Subject): Identity => ({
    certificate: sign(signer, clientKey.publicKey, subject, [{ name: 'extKeyUsage', clientAuth: true }]),
    key: pem(clientKey.privateKey),
  })

  return {
    caCertificate: sign(signer, caKey.publicKey, authority, [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ]),
    apiServer: {
      certificate: sign(signer, serverKey.publicKey, { commonName: 'kube-apiserver' }, [
        { name: 'extKeyUsage', serverAuth: true },
        { name: 'subjectAltName', altNames: alternativeNames(serviceAddress) },
      ]),
      key: pem(serverKey.privateKey),
    },
    admin: client({ commonName: 'admin', organization: 'system:masters' }),
    controllerManager: client({ commonName: 'system:kube-controller-manager' }),
    scheduler: client({ commonName: 'system:kube-scheduler' }),
    serviceAccountKey: serviceAccountKey.privateKey.export({ type: 'sec1', format: 'pem' }).toString(),
  }
}

function sign(signer: Signer, publicKey: KeyObject, subject: Subject, extensions: object[]): string {
  const certificate = forge.pki.createCertificate()
  const now = Date.now()
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey.export({ type: 'spki', format: 'pem' }).toString())
  // A first byte from 0x01 to 0x7f makes the number positive and its encoding minimal: Go refuses any other.
  certificate.serialNumber = `01${randomBytes(15).toString('hex')}`
  certificate.validity.notBefore = new Date(now - 3_600_000)
  certificate.validity.notAfter = new Date(now + 365 * 86_400_000)
  certificate.setSubject(fieldsOf(subject))
  certificate.setIssuer(signer.subject)
  certificate.setExtensions(extensions)
  certificate.sign(signer.key, forge.md.sha256.create())
  return forge.pki.certificateToPem(certificate)
}

function fieldsOf(subject: Subject): forge.pki.CertificateField[] {
  const fields = [{ name: 'commonName', value: subject.commonName }]
  return subject.organization ? [...fields, { name: 'organizationName', value: subject.organization }] : fields
}

/** In X.509: 2 is a DNS name, 7 an IP address. */
function alternativeNames(serviceAddress: string): object[] {
  return [
    { type: 2, value: 'localhost' },
    { type: 2, value: 'kubernetes.default.svc' },
    { type: 7, ip: '127.0.0.1' },
    { type: 7, ip: serviceAddress },
  ]
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Who a kubeconfig speaks as. */
export type KubeconfigUser = { readonly identity: Identity } | { readonly token: string }

/** A kubeconfig that stands alone: certificates and keys are inside. */
export function kubeconfigText(cluster: { url: URL; caCertificate: string }, user: KubeconfigUser): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const credentials =
    'token' in user
      ? { token: user.token }
      : { 'client-certificate-data': base64(user.identity.certificate), 'client-key-data': base64(user.identity.key) }
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'devcluster',
        cluster: { server: cluster.url.origin, 'certificate-authority-data': base64(cluster.caCertificate) },
      },
    ],
    users: [{ name: 'devcluster', user: credentials }],
    contexts: [{ name: 'devcluster', context: { cluster: 'devcluster', user: 'devcluster', namespace: 'default' } }],
    'current-context': 'devcluster',
  })
}
