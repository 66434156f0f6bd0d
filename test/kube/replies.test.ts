import t from 'tap'
import { pods } from '../../src/api/core.ts'
import type { KubeClient } from '../../src/kube/client.ts'
import { KubeError } from '../../src/kube/errors.ts'
import { clientOf, failure, json, rejectionOf, startServer } from './scripted-server.ts'

const ref = { namespace: 'default', name: 'a' }
const read = (client: KubeClient) => client.get(pods, ref)
const write = (client: KubeClient) => client.patch(pods, ref, {}, { type: 'merge' })
const rehearse = (client: KubeClient) => client.create(pods, { metadata: ref }, { dryRun: true })

const cases = [
  { status: 400, reason: 'BadRequest', code: 'BadRequest' },
  { status: 401, reason: 'Unauthorized', code: 'Unauthorized' },
  { status: 403, reason: 'Forbidden', code: 'Forbidden' },
  { status: 404, reason: 'NotFound', code: 'NotFound' },
  { status: 405, reason: 'MethodNotAllowed', code: 'BadRequest' },
  { status: 409, reason: 'AlreadyExists', code: 'AlreadyExists' },
  { status: 409, reason: 'Conflict', code: 'Conflict' },
  { status: 410, reason: 'Expired', code: 'Expired' },
  { status: 410, reason: 'Gone', code: 'Expired' },
  { status: 413, reason: 'RequestEntityTooLarge', code: 'BadRequest' },
  { status: 422, reason: 'Invalid', code: 'Invalid' },
  { status: 429, reason: 'TooManyRequests', code: 'TooManyRequests' },
  { status: 302, reason: undefined, code: 'ServerError' },
  { status: 500, reason: 'InternalError', code: 'ServerError' },
  { status: 500, reason: undefined, code: 'ServerError', write: 'OutcomeUnknown' },
  { status: 500, reason: 'ServerTimeout', code: 'ServerError', write: 'OutcomeUnknown' },
  { status: 502, reason: undefined, code: 'ServerError', write: 'OutcomeUnknown' },
  { status: 503, reason: 'ServiceUnavailable', code: 'ServerError' },
  { status: 503, reason: undefined, code: 'ServerError', write: 'OutcomeUnknown' },
  { status: 504, reason: 'Timeout', code: 'ServerError', write: 'OutcomeUnknown' },
]

for (const { status, reason, code, write: writeCode = code } of cases) {
  t.test(`${status} ${reason ?? 'without a reason'} is ${code} of a read, ${writeCode} of a write`, async (t) => {
    const server = await startServer(t, failure(status, reason))
    const client = clientOf(t, server)
    t.match(await rejectionOf(read(client)), { code, status, reason })
    t.match(await rejectionOf(write(client)), { code: writeCode, status, reason })
    t.match(await rejectionOf(rehearse(client)), { code, status, reason }, 'a dry run leaves nothing behind')
  })
}

t.test('an error says in one line what was tried and what the server said', async (t) => {
  const server = await startServer(t, failure(409, 'Conflict', 'the object has been modified;\n  please try again'))
  const client = clientOf(t, server)
  const error = await rejectionOf(client.patch(pods, ref, {}, { type: 'merge', subresource: 'status' }))
  t.ok(error instanceof KubeError)
  t.equal(
    (error as KubeError).message,
    'patch pods/status default/a: Conflict (409): the object has been modified; please try again',
  )
})

t.test('an error of a create names what it can of the object', async (t) => {
  const server = await startServer(t, failure(403, 'Forbidden', 'no'))
  const client = clientOf(t, server)
  const messageOf = async (promise: Promise<unknown>) => ((await rejectionOf(promise)) as Error).message
  t.equal(await messageOf(client.create(pods, { metadata: ref })), 'create pods default/a: Forbidden (403): no')
  t.equal(
    await messageOf(client.create(pods, { metadata: { namespace: 'default', generateName: 'b-' } })),
    'create pods default/b-*: Forbidden (403): no',
  )
  t.equal(await messageOf(client.list(pods)), 'list pods *: Forbidden (403): no')
})

t.test('the causes of a refusal are kept', async (t) => {
  const causes = [{ field: 'spec.containers[0].image', message: 'Required value', reason: 'FieldValueRequired' }]
  const server = await startServer(t, failure(422, 'Invalid', 'no', { causes }))
  t.match(await rejectionOf(write(clientOf(t, server))), { code: 'Invalid', causes })
})

t.test('the wait that the server asks for is given in milliseconds', async (t) => {
  const server = await startServer(t, (_request, response) => json(response, 429, {}, { 'retry-after': '2' }))
  const client = clientOf(t, server)
  t.match(await rejectionOf(write(client)), { code: 'TooManyRequests', retryAfterMs: 2000 })
  server.script = failure(500, 'ServerTimeout', 'no', { retryAfterSeconds: 3 })
  t.match(await rejectionOf(write(client)), { retryAfterMs: 3000 })
  server.script = (_request, response) => json(response, 503, {}, { 'retry-after': 'Fri, 01 Jan 2100 00:00:00 GMT' })
  t.match(await rejectionOf(write(client)), { retryAfterMs: undefined })
})

t.test('a failure that is not from the API server is told in its own words', async (t) => {
  const server = await startServer(t, (_request, response) => {
    response.writeHead(502, { 'content-type': 'text/html' })
    response.end(`<html>\n<b>bad gateway</b>${' '.repeat(10)}${'x'.repeat(10_000)}</html>`)
  })
  const error = (await rejectionOf(read(clientOf(t, server)))) as KubeError
  t.match(error.message, /^get pods default\/a: ServerError \(502\): <html> <b>bad gateway<\/b> x+…$/)
  t.ok(error.message.length < 600)
})

t.test('a success that is not JSON is no answer', async (t) => {
  const server = await startServer(t, (_request, response) => void response.end('{"metadata": {"name": "sec'))
  const error = (await rejectionOf(write(clientOf(t, server)))) as KubeError
  t.match(error, { code: 'OutcomeUnknown', status: 200 })
  t.equal(error.message, 'patch pods default/a: OutcomeUnknown (200): the reply is not JSON')
  t.equal(error.cause, undefined, 'the parser would quote the reply')
})

t.test('a delete needs no JSON in its reply', async (t) => {
  const server = await startServer(t, (_request, response) => void response.end())
  await clientOf(t, server).delete(pods, ref)
  t.equal(server.requests.length, 1)
})
