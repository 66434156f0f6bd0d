// One of the two servers that are compared, in a process of its own: `gate` or `bare`. Prints its port and its
// authority's certificate as one line of JSON, and ends when its standard input does.
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { createAuthority, signServing } from '../../certs/authority.ts'
import { admission } from '../../src/cli/serve-gate.ts'
import { createCaches } from '../../src/cli/caches.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createEventRecorder } from '../../src/telemetry/events.ts'
import { createLogger } from '../../src/telemetry/logger.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { buildApp } from '../../webhooks/app.ts'
import { startServer, type KeyPair } from '../../webhooks/server.ts'
import { cachedObjects } from './objects.ts'
import { memoryClient } from './memory-client.ts'

const clock = systemClock

/** The gate as `sandgate serve` builds it, on caches filled from memory. */
async function serveGate(pair: KeyPair): Promise<number> {
  const client = memoryClient(cachedObjects())
  const log = createLogger({ level: 'info' })
  const metrics = createMetrics()
  const runs = { reconcilers: true, sandboxController: true }
  const caches = createCaches({ runs, client, clock, log, metrics })
  void caches.run(new AbortController().signal)
  await caches.synced
  const events = createEventRecorder({ client, component: 'sandgate', clock, log })
  const configuration = { current: defaultConfig, problem: undefined, onChange: () => {}, close: () => {} }
  const app = buildApp(admission({ client, caches, configuration, clock, log, metrics, events }))
  const { port } = await startServer({ app, pair, port: 0, host: '127.0.0.1', clock })
  return port
}

/** The least that an API server takes for an answer: it reads the review for its UID and allows it. */
async function serveBare(pair: KeyPair): Promise<number> {
  const server = createServer({ ...pair, minVersion: 'TLSv1.2', keepAliveTimeout: 120_000 }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { uid } = (JSON.parse(Buffer.concat(chunks).toString()) as { request: { uid: string } }).request
      const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true } }
      const text = JSON.stringify(review)
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
      response.end(text)
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const authority = await createAuthority(clock.now())
const pair = await signServing(authority, ['127.0.0.1'], clock.now())
const port = await (process.argv[2] === 'gate' ? serveGate(pair) : serveBare(pair))
process.stdout.write(`${JSON.stringify({ port, ca: authority.cert })}\n`)
process.stdin.resume()
process.stdin.on('end', () => process.exit())
