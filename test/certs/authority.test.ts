import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer, get } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { authorityLifeMs, createAuthority, serviceHosts, servingLifeMs, signServing } from '../../certs/authority.ts'
import { isMatchingPair, isTrusted } from '../../certs/pem.ts'

const hourMs = 3_600_000
// Certificates know seconds only.
const now = Math.floor(Date.now() / 1000) * 1000

t.test('an authority lives a year, is backdated by an hour and signs nothing but leaves', async (t) => {
  const { cert, key } = await createAuthority(now)
  const certificate = new X509Certificate(cert)
  t.equal(certificate.ca, true)
  t.equal(certificate.validFromDate.getTime(), now - hourMs)
  t.equal(certificate.validToDate.getTime(), now + authorityLifeMs)
  t.ok(isMatchingPair({ cert, key }))
  t.equal(certificate.publicKey.asymmetricKeyDetails?.modulusLength, 2048)
})

t.test('two authorities share neither name nor key identifier nor serial number', async (t) => {
  const [a, b] = (await Promise.all([createAuthority(now), createAuthority(now)])).map(
    ({ cert }) => new X509Certificate(cert),
  )
  t.not(a?.subject, b?.subject)
  t.not(a?.serialNumber, b?.serialNumber)
  t.not(a?.publicKey.export({ type: 'spki', format: 'pem' }), b?.publicKey.export({ type: 'spki', format: 'pem' }))
})

t.test('a serving certificate verifies against its authority and against no other', async (t) => {
  const [authority, other] = await Promise.all([createAuthority(now), createAuthority(now)])
  const leaf = new X509Certificate((await signServing(authority, ['gate.ns.svc'], now)).cert)
  t.ok(isTrusted(leaf, [new X509Certificate(authority.cert)], now))
  t.notOk(isTrusted(leaf, [new X509Certificate(other.cert)], now))
  t.notOk(isTrusted(leaf, [new X509Certificate(authority.cert)], now + servingLifeMs), 'nor when it has expired')
  t.equal(leaf.ca, false)
})

t.test('a serving certificate names its DNS names and addresses', async (t) => {
  const authority = await createAuthority(now)
  const hosts = [...serviceHosts('gate', 'ns', 'cluster.local'), '127.0.0.1', '::1']
  const leaf = new X509Certificate((await signServing(authority, hosts, now)).cert)
  for (const name of ['gate.ns.svc', 'gate.ns.svc.cluster.local', 'gate.ns']) t.equal(leaf.checkHost(name), name)
  t.equal(leaf.checkHost('other.ns.svc'), undefined)
  for (const address of ['127.0.0.1', '::1']) t.equal(leaf.checkIP(address), address)
})

t.test('a serving certificate never outlives its authority', async (t) => {
  const authority = await createAuthority(now)
  const late = now + authorityLifeMs - hourMs
  const leaf = new X509Certificate((await signServing(authority, ['x'], late)).cert)
  t.equal(leaf.validToDate.getTime(), now + authorityLifeMs)
  const early = new X509Certificate((await signServing(authority, ['x'], now)).cert)
  t.equal(early.validToDate.getTime(), now + servingLifeMs)
})

t.test('serial numbers are positive and 16 bytes long', async (t) => {
  const authority = await createAuthority(now)
  for (let i = 0; i < 8; i++) {
    const { serialNumber } = new X509Certificate((await signServing(authority, ['x'], now)).cert)
    t.match(serialNumber, /^[4-7][0-9A-F]{31}$/)
  }
})

t.test('a client that trusts the authority completes a TLS handshake, one that does not refuses', async (t) => {
  const [authority, other] = await Promise.all([createAuthority(now), createAuthority(now)])
  const server = createServer(await signServing(authority, ['127.0.0.1'], now), (_request, response) =>
    response.end('hello'),
  )
  t.teardown(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const call = async (ca: string) => {
    const request = get({ host: '127.0.0.1', port, ca, agent: false })
    const [response] = (await once(request, 'response')) as [{ statusCode: number; resume(): void }]
    response.resume()
    return response.statusCode
  }
  t.equal(await call(authority.cert), 200)
  t.equal(await call(other.cert + authority.cert), 200, 'a bundle of several is fine')
  await t.rejects(call(other.cert), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
})
