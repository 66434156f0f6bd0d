import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import forge from 'node-forge'
import t from 'tap'
import { stringify } from 'yaml'
import { pods } from '../../src/api/core.ts'
import { loadKubeConfig } from '../../src/kube/config.ts'
import type { ClusterAccess, Credentials } from '../../src/kube/config.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { accessTo, anObject, clientOf, failure, rejectionOf, startServer } from './scripted-server.ts'

const ref = { namespace: 'default', name: 'a' }

/** A self-signed certificate for 127.0.0.1. */
function createCertificate(commonName: string) {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  })
  const key = forge.pki.privateKeyFromPem(privateKey)
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = forge.pki.setRsaPublicKey(key.n, key.e)
  certificate.serialNumber = '01'
  certificate.validity.notBefore = new Date(Date.now() - 3_600_000)
  certificate.validity.notAfter = new Date(Date.now() + 3_600_000)
  const subject = [{ name: 'commonName', value: commonName }]
  certificate.setSubject(subject)
  certificate.setIssuer(subject)
  certificate.setExtensions([
    { name: 'basicConstraints', cA: true },
    { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
  ])
  certificate.sign(key, forge.md.sha256.create())
  return { cert: forge.pki.certificateToPem(certificate), key: privateKey }
}

interface Identity {
  cluster?: object
  user?: object
}

/** Writes a kubeconfig for `server` and loads it. */
function loadFor(directory: string, server: URL, { cluster, user }: Identity, clock = new ManualClock()) {
  const path = join(directory, 'config')
  writeFileSync(
    path,
    stringify({
      clusters: [{ name: 'c', cluster: { server: server.origin, ...cluster } }],
      users: [{ name: 'u', user: user ?? {} }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }),
  )
  return loadKubeConfig({ kubeconfig: path, clock })
}

async function headerOf(access: ClusterAccess): Promise<string | undefined> {
  return (await access.credentials()).headers['authorization']
}

t.test('a token, a name and password, and another identity go into headers', async (t) => {
  const server = new URL('https://127.0.0.1:1')
  const directory = t.testdir()
  t.equal(await headerOf(loadFor(directory, server, { user: { token: 'tok' } })), 'Bearer tok')
  t.equal(
    await headerOf(loadFor(directory, server, { user: { username: 'me', password: 'pä:ss' } })),
    `Basic ${Buffer.from('me:pä:ss').toString('base64')}`,
  )
  const { headers } = await loadFor(directory, server, { user: { token: 'tok', as: 'other' } }).credentials()
  t.same(headers, { authorization: 'Bearer tok', 'impersonate-user': 'other' })
})

t.test('a token file is read again within a minute, and its line break is no part of the token', async (t) => {
  const clock = new ManualClock()
  const directory = t.testdir({ token: 'first\n' })
  const user = { tokenFile: 'token', token: 'never used' }
  const access = loadFor(directory, new URL('https://127.0.0.1:1'), { user }, clock)
  const first = await access.credentials()
  t.equal(first.headers['authorization'], 'Bearer first')
  writeFileSync(join(directory, 'token'), 'second\n')
  t.equal(await access.credentials(), first, 'a hot path reads no file')
  await clock.advance(60_000)
  t.equal(await headerOf(access), 'Bearer second')
})

t.test('a token file that is missing does no harm until the server refuses the last token', async (t) => {
  const clock = new ManualClock()
  const directory = t.testdir({ token: 'first' })
  const access = loadFor(directory, new URL('https://127.0.0.1:1'), { user: { tokenFile: 'token' } }, clock)
  const first = await access.credentials()
  unlinkSync(join(directory, 'token'))
  await clock.advance(60_000)
  t.equal(await access.credentials(), first)
  t.match(await rejectionOf(access.credentials(first)), { code: 'Unreadable', message: /token: no such file$/ })
})

t.test('a refused token is read again, and the request repeated once', async (t) => {
  const directory = t.testdir({ token: 'old' })
  const server = await startServer(t, (request, response) =>
    request.headers.authorization === 'Bearer new' ? anObject(request, response) : failure(401)(request, response),
  )
  const clock = new ManualClock()
  const client = clientOf(t, loadFor(directory, server.url, { user: { tokenFile: 'token' } }, clock))
  t.match(await rejectionOf(client.get(pods, ref)), { code: 'Unauthorized', status: 401 })
  await clock.advance(1_000)
  writeFileSync(join(directory, 'token'), 'new')
  t.same(await client.create(pods, { metadata: ref }), { metadata: { name: 'pods' } })
  t.same(
    server.requests.map(({ method, headers }) => `${method} ${headers.authorization}`),
    ['GET Bearer old', 'GET Bearer old', 'POST Bearer old', 'POST Bearer new'],
  )
  t.equal(server.requests[3]?.body, server.requests[2]?.body)
})

t.test('a watch, too, is opened with fresh credentials', async (t) => {
  const directory = t.testdir({ token: 'old' })
  const server = await startServer(t, (request, response) => {
    if (request.headers.authorization === 'Bearer new') return response.end('{"type":"BOOKMARK"}\n')
    writeFileSync(join(directory, 'token'), 'new')
    return failure(401)(request, response)
  })
  const client = clientOf(t, loadFor(directory, server.url, { user: { tokenFile: 'token' } }))
  const events: unknown[] = []
  const options = { resourceVersion: '1', signal: new AbortController().signal }
  for await (const event of await client.watch(pods, options)) events.push(event)
  t.same(events, [{ type: 'BOOKMARK' }])
})

t.test('credentials that cannot be had are Unauthorized, with the reason', async (t) => {
  const server = await startServer(t)
  const access = accessTo(server.url, () => Promise.reject(new Error('the plugin failed')))
  const error = (await rejectionOf(clientOf(t, access).get(pods, ref))) as Error
  t.match(error, { code: 'Unauthorized', status: 0 })
  t.equal(error.message, 'get pods default/a: Unauthorized: the plugin failed')
  t.equal(server.requests.length, 0)
})

t.test('a plugin is run once for all who wait for it, and again when the server refuses what it gave', async (t) => {
  const clock = new ManualClock()
  const directory = t.testdir({
    'plugin.sh': [
      '#!/bin/sh',
      'echo run >> "$(dirname "$0")/runs"',
      'runs=$(wc -l < "$(dirname "$0")/runs")',
      `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t'$runs'"}}'`,
    ].join('\n'),
  })
  chmodSync(join(directory, 'plugin.sh'), 0o755)
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin.sh', args: [] }
  const access = loadFor(directory, new URL('https://127.0.0.1:1'), { user: { exec } }, clock)
  const all = await Promise.all(Array.from({ length: 10 }, () => access.credentials()))
  t.same(
    all.map(({ headers }) => headers['authorization']?.replace(/\s/g, '')),
    Array.from({ length: 10 }, () => 'Bearert1'),
  )
  await clock.advance(60_000)
  const second = await access.credentials()
  t.match(second.headers['authorization'], /t\s*1$/, 'what it gave has no stated end')
  const refused = await Promise.all(Array.from({ length: 10 }, () => access.credentials(second)))
  t.equal(new Set(refused).size, 1)
  t.match(refused[0]?.headers['authorization'], /t\s*2$/)
  t.match((await access.credentials(refused[0])).headers['authorization'], /t\s*2$/, 'not more often than each second')
})

t.test('what a broken plugin printed is not told', async (t) => {
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'echo', args: ['secret-token'] }
  const access = loadFor(t.testdir(), new URL('https://127.0.0.1:1'), { user: { exec } })
  const error = (await rejectionOf(access.credentials())) as Error
  t.match(error, { code: 'CredentialsFailed' })
  t.match(error.message, /\/config: the credential plugin did not print an ExecCredential$/)
  t.equal(error.cause, undefined)
})

t.test('a plugin that is not there is named', async (t) => {
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'no-such-plugin' }
  const access = loadFor(t.testdir(), new URL('https://127.0.0.1:1'), { user: { exec } })
  t.match(await rejectionOf(access.credentials()), { code: 'CredentialsFailed', message: /no-such-plugin/ })
})

t.test('over TLS', async (t) => {
  const serverPair = createCertificate('server')
  const onePair = createCertificate('one')
  const otherPair = createCertificate('other')
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const trusted = { 'certificate-authority-data': base64(serverPair.cert) }
  const tls = { ...serverPair, requestCert: true, ca: [onePair.cert, otherPair.cert], rejectUnauthorized: false }
  const startTls = (t: Parameters<typeof startServer>[0]) => {
    const names: (string | undefined)[] = []
    const script: typeof anObject = (request, response) => {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate()
      names.push(subject?.CN as string | undefined)
      anObject(request, response)
    }
    return startServer(t, script, tls).then((server) => ({ server, names }))
  }

  t.test('a server is trusted by its CA only', async (t) => {
    const { server } = await startTls(t)
    await clientOf(t, loadFor(t.testdir(), server.url, { cluster: trusted })).get(pods, ref)
    const stranger = { 'certificate-authority-data': base64(onePair.cert) }
    const client = clientOf(t, loadFor(t.testdir(), server.url, { cluster: stranger }))
    t.match(await rejectionOf(client.create(pods, { metadata: ref })), { code: 'Unreachable' })
    t.equal(server.requests.length, 1)
  })

  t.test('the name to verify can be another than the address', async (t) => {
    const { server } = await startTls(t)
    const cluster = { ...trusted, 'tls-server-name': 'elsewhere' }
    const client = clientOf(t, loadFor(t.testdir(), server.url, { cluster }))
    t.match(await rejectionOf(client.get(pods, ref)), {
      code: 'Unreachable',
      cause: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    })
  })

  t.test('verification can be turned off', async (t) => {
    const { server } = await startTls(t)
    const cluster = { 'insecure-skip-tls-verify': true }
    await clientOf(t, loadFor(t.testdir(), server.url, { cluster })).get(pods, ref)
    t.equal(server.requests.length, 1)
  })

  t.test('a client certificate identifies, and a rotated one replaces it with its connections', async (t) => {
    const clock = new ManualClock()
    const { server, names } = await startTls(t)
    const directory = t.testdir({ 'tls.crt': onePair.cert, 'tls.key': onePair.key })
    const user = { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' }
    const client = clientOf(t, loadFor(directory, server.url, { cluster: trusted, user }, clock))
    await client.get(pods, ref)
    writeFileSync(join(directory, 'tls.crt'), otherPair.cert)
    writeFileSync(join(directory, 'tls.key'), otherPair.key)
    await client.get(pods, ref)
    await clock.advance(60_000)
    await client.get(pods, ref)
    t.same(names, ['one', 'one', 'other'])
  })
})

t.test('unchanged TLS material stays the same object, so that connections last', async (t) => {
  const clock = new ManualClock()
  const directory = t.testdir({ token: 'first' })
  const access = loadFor(directory, new URL('https://127.0.0.1:1'), { user: { tokenFile: 'token' } }, clock)
  const first: Credentials = await access.credentials()
  writeFileSync(join(directory, 'token'), 'second')
  await clock.advance(60_000)
  const second = await access.credentials()
  t.not(second, first)
  t.equal(second.tls, first.tls)
})
