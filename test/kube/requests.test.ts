import t from 'tap'
import { namespaces, networkPolicies, pods } from '../../src/api/core.ts'
import { clientOf, json, startServer } from './scripted-server.ts'

const ref = { namespace: 'default', name: 'a' }

t.test('an object is read by its path, with the credentials and nothing else', async (t) => {
  const server = await startServer(t)
  const pod = await clientOf(t, server, { userAgent: 'sandgate/1.0' }).get(pods, ref)
  t.same(pod, { metadata: { name: 'a' } })
  const [request] = server.requests
  t.match(request, { method: 'GET', path: '/api/v1/namespaces/default/pods/a', query: {}, body: '' })
  t.match(request?.headers, {
    authorization: 'Bearer secret-token',
    accept: 'application/json',
    'user-agent': 'sandgate/1.0',
  })
})

t.test('a group, and a kind without namespaces, have paths of their own', async (t) => {
  const server = await startServer(t)
  const client = clientOf(t, server)
  await client.get(networkPolicies, ref)
  await client.get(namespaces, { name: 'default' })
  t.same(
    server.requests.map(({ path }) => path),
    ['/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/a', '/api/v1/namespaces/default'],
  )
})

t.test('a name cannot lead to another path', async (t) => {
  const server = await startServer(t)
  await clientOf(t, server).get(pods, { namespace: 'default', name: '../secrets/b?x=1' })
  t.equal(server.requests[0]?.path, '/api/v1/namespaces/default/pods/..%2Fsecrets%2Fb%3Fx%3D1')
})

t.test('the path of the server goes before the path of the object', async (t) => {
  const server = await startServer(t)
  const url = new URL('/k8s/clusters/c-1/', server.url)
  const client = clientOf(t, { server: url, credentials: () => Promise.resolve({ headers: {}, tls: {} }) })
  await client.get(pods, ref)
  t.equal(server.requests[0]?.path, '/k8s/clusters/c-1/api/v1/namespaces/default/pods/a')
})

t.test('a list passes its selectors and its page on, and types its items', async (t) => {
  const server = await startServer(t, (_request, response) =>
    json(response, 200, {
      metadata: { resourceVersion: '7', continue: 'next' },
      items: [{ metadata: { name: 'a' } }, { kind: 'Special', apiVersion: 'v9', metadata: { name: 'b' } }],
    }),
  )
  const list = await clientOf(t, server).list(pods, {
    namespace: 'default',
    labelSelector: 'a=b,c!=d',
    fieldSelector: 'spec.nodeName=n',
    limit: 500,
    continue: 'here',
    resourceVersion: '0',
  })
  t.same(list, {
    metadata: { resourceVersion: '7', continue: 'next' },
    items: [
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } },
      { apiVersion: 'v9', kind: 'Special', metadata: { name: 'b' } },
    ],
  })
  t.same(server.requests[0]?.query, {
    labelSelector: 'a=b,c!=d',
    fieldSelector: 'spec.nodeName=n',
    limit: '500',
    continue: 'here',
    resourceVersion: '0',
  })
})

t.test('a list of nothing is empty, even if the server says null', async (t) => {
  const server = await startServer(t, (_request, response) => json(response, 200, { metadata: {}, items: null }))
  t.same(await clientOf(t, server).list(pods), { metadata: {}, items: [] })
  t.equal(server.requests[0]?.path, '/api/v1/pods')
})

t.test('a created object is typed, and the server is asked to stop when the client does', async (t) => {
  const server = await startServer(t)
  await clientOf(t, server).create(pods, { metadata: { namespace: 'default', generateName: 'a-' } })
  const [request] = server.requests
  t.match(request, { method: 'POST', path: '/api/v1/namespaces/default/pods' })
  t.equal(request?.headers['content-type'], 'application/json')
  t.same(request?.query, { fieldManager: 'sandgate', timeout: '3000ms' })
  t.same(JSON.parse(request?.body ?? ''), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'default', generateName: 'a-' },
  })
})

t.test('every option of a write reaches the server', async (t) => {
  const server = await startServer(t)
  await clientOf(t, server).replace(
    pods,
    { metadata: ref },
    { dryRun: true, fieldManager: 'me', fieldValidation: 'Strict', subresource: 'status', timeoutMs: 500 },
  )
  t.match(server.requests[0], { method: 'PUT', path: '/api/v1/namespaces/default/pods/a/status' })
  t.same(server.requests[0]?.query, {
    dryRun: 'All',
    fieldManager: 'me',
    fieldValidation: 'Strict',
    timeout: '500ms',
  })
})

t.test('each kind of patch says what it is', async (t) => {
  const server = await startServer(t)
  const client = clientOf(t, server)
  await client.patch(pods, ref, { a: 1 }, { type: 'merge', force: true })
  await client.patch(pods, ref, [{ op: 'remove', path: '/a' }], { type: 'json' })
  await client.patch(pods, ref, { a: 1 }, { type: 'apply', force: true })
  await client.patch(pods, ref, { a: 1 }, { type: 'apply' })
  t.same(
    server.requests.map(({ method, headers, query, body }) => [method, headers['content-type'], query['force'], body]),
    [
      ['PATCH', 'application/merge-patch+json', undefined, '{"a":1}'],
      ['PATCH', 'application/json-patch+json', undefined, '[{"op":"remove","path":"/a"}]'],
      ['PATCH', 'application/apply-patch+yaml', 'true', '{"a":1}'],
      ['PATCH', 'application/apply-patch+yaml', undefined, '{"a":1}'],
    ],
  )
})

t.test('a delete carries its preconditions, propagation and grace', async (t) => {
  const server = await startServer(t)
  const client = clientOf(t, server)
  await client.delete(pods, ref, { uid: 'u', resourceVersion: '7', propagation: 'Foreground', gracePeriodSeconds: 0 })
  await client.delete(pods, ref)
  t.equal(server.requests[0]?.method, 'DELETE')
  t.same(
    server.requests.map(({ body }) => JSON.parse(body) as unknown),
    [
      {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        propagationPolicy: 'Foreground',
        gracePeriodSeconds: 0,
        preconditions: { uid: 'u', resourceVersion: '7' },
      },
      { kind: 'DeleteOptions', apiVersion: 'v1' },
    ],
  )
})

t.test('each request is reported by verb, resource and code', async (t) => {
  const reports: unknown[][] = []
  const server = await startServer(t)
  const client = clientOf(t, server, {
    onRequest: ({ verb, resource, code, durationMs }) => reports.push([verb, resource, code, durationMs >= 0]),
  })
  await client.get(pods, ref)
  await client.patch(pods, ref, {}, { type: 'merge', subresource: 'status' })
  server.script = (request) => request.socket.destroy()
  await client.replace(pods, { metadata: ref }).catch(() => undefined)
  t.same(reports, [
    ['get', 'pods', '200', true],
    ['patch', 'pods/status', '200', true],
    ['update', 'pods', 'OutcomeUnknown', true],
  ])
})
