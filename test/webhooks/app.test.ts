import t from 'tap'
import { defaultConfig } from '../../src/config/schema.ts'
import { labels } from '../../src/api/vocabulary.ts'
import type { Finding } from '../../src/policy/rule.ts'
import { webhooks } from '../../webhooks/table.ts'
import { buildGate, claim, fixedFacts, realJudgement, responseIn, review, template } from './reviews.ts'

const finding = (
  rule: string,
  field: string,
  mode: Finding['mode'] = 'enforce',
  rest: Partial<Finding> = {},
): Finding => ({
  rule,
  field,
  mode,
  message: `${field}: is wrong. Mend it. (${rule})`,
  ...rest,
})
const judging = (...findings: Finding[]) => buildGate({ judgement: { ...realJudgement, evaluate: () => findings } })
const claims = '/validate/claims'
const created = review('sandboxclaims', { object: claim() })

t.test('every path of the table is a route that answers a review with its uid', async (t) => {
  const gate = judging()
  for (const { path, targets } of webhooks) {
    const { resource, subresource } = targets[0] ?? {}
    const what = [resource?.plural, ...(subresource ? [subresource] : [])].join('/')
    const { spec } = template()
    const object = {
      metadata: { name: 'x' },
      spec: { ...spec, ...claim().spec, replicas: 1, sandboxTemplateRef: { name: 't' } },
    }
    const answer = await gate.ask(path, review(what, { object, oldObject: object, operation: 'UPDATE' }))
    t.match(answer, { uid: 'u-1', allowed: true }, path)
  }
})

t.test('a refusal says what, where, by which rule, and why in the terms of HTTP', async (t) => {
  const answer = await judging(finding('claim/env-policy', 'spec.env')).ask(claims, created)
  t.strictSame(answer, {
    uid: 'u-1',
    allowed: false,
    status: {
      status: 'Failure',
      code: 403,
      reason: 'Forbidden',
      message: 'spec.env: is wrong. Mend it. (claim/env-policy)',
      details: {
        name: 'c',
        group: 'extensions.agents.x-k8s.io',
        kind: 'SandboxClaim',
        causes: [{ field: 'spec.env', message: 'is wrong. Mend it. (claim/env-policy)', reason: 'claim/env-policy' }],
      },
    },
    auditAnnotations: { denied: 'claim/env-policy' },
  })
})

t.test('all violations come in one answer, each on a line of its own', async (t) => {
  const gate = judging(finding('claim/env-policy', 'spec.env'), finding('claim/name', 'metadata.name'))
  const { status } = await gate.ask(claims, created)
  t.equal(
    status?.message,
    '2 problems:\n- spec.env: is wrong. Mend it. (claim/env-policy)\n- metadata.name: is wrong. Mend it. (claim/name)',
  )
  t.equal(status?.details?.causes?.length, 2)
})

t.test('thousands of violations are counted, not spelled out', async (t) => {
  const many = Array.from({ length: 5000 }, (_, i) => finding('claim/env-name', `spec.env[${i}]`))
  const { status } = await judging(...many).ask(claims, created)
  t.match(status?.message, /^5000 problems:\n[\s\S]*\n- and 4975 more$/)
  t.equal(status?.details?.causes?.length, 25)
})

t.test('only rules of form make an answer "invalid" instead of "forbidden"', async (t) => {
  t.match(await judging(finding('claim/name', 'metadata.name')).ask(claims, created), {
    status: { code: 422, reason: 'Invalid' },
  })
  const both = judging(finding('claim/name', 'metadata.name'), finding('claim/env-policy', 'spec.env'))
  t.match(await both.ask(claims, created), { status: { code: 403, reason: 'Forbidden' } })
})

t.test('control characters of the object do not reach the terminal', async (t) => {
  const answer = await judging(finding('claim/env-name', 'spec.env["\u001b[31m"]')).ask(claims, created)
  t.notMatch(JSON.stringify(answer), /\\u001b/)
})

t.test('warnings and audited rules let the change through, and say so', async (t) => {
  const gate = judging(
    finding('claim/pool-missing', 'spec.warmPoolRef.name', 'warn'),
    finding('claim/pool-missing', 'spec.warmPoolRef.name', 'warn'),
    finding('claim/env-policy', 'spec.env', 'audit'),
    finding('claim/name', 'metadata.name', 'warn', { lowered: 'ratchet' }),
  )
  t.strictSame(await gate.ask(claims, created), {
    uid: 'u-1',
    allowed: true,
    warnings: [
      'spec.warmPoolRef.name: is wrong. Mend it. (claim/pool-missing)',
      'metadata.name: is wrong. Mend it. (claim/name)',
    ],
    auditAnnotations: { warned: 'claim/pool-missing,claim/name', 'would-deny': 'claim/env-policy,claim/name' },
  })
})

t.test('a refusal carries its warnings too', async (t) => {
  const gate = judging(finding('claim/env-policy', 'spec.env'), finding('claim/pool-missing', 'spec', 'warn'))
  t.match(await gate.ask(claims, created), {
    allowed: false,
    warnings: ['spec: is wrong. Mend it. (claim/pool-missing)'],
  })
})

t.test('breaking the glass is in the audit log with its user', async (t) => {
  const gate = judging(finding('claim/env-policy', 'spec.env', 'warn', { lowered: 'break-glass' }))
  t.match(await gate.ask(claims, created), { allowed: true, auditAnnotations: { 'break-glass': 'alice' } })
})

const malformed: [string, unknown][] = [
  ['no JSON', '{'],
  ['nothing', ''],
  ['a list', []],
  ['null', null],
  ['a number', '3'],
  ['no request', { kind: 'AdmissionReview' }],
  ['a request that is text', { request: 'x' }],
  ['a request without uid', { request: {} }],
  ['deep nesting', '['.repeat(200_000)],
]
for (const [what, body] of malformed) {
  t.test(`a body that is ${what} is refused with 400 and an empty uid`, async (t) => {
    t.match(await buildGate().ask(claims, body), {
      uid: '',
      allowed: false,
      status: { code: 400, reason: 'BadRequest' },
    })
  })
}

const odd: [string, Record<string, unknown>][] = [
  ['for another resource', review('sandboxes', { object: claim() })],
  ['for a subresource that is not registered', review('sandboxclaims/status', { object: claim() })],
  ['for an unknown operation', review('sandboxclaims', { operation: 'CONNECT', object: claim() })],
  ['without an object', review('sandboxclaims', {})],
  ['with an object without metadata', review('sandboxclaims', { object: { spec: {} } })],
  ['with labels that are numbers', review('sandboxclaims', { object: claim({ metadata: { labels: { a: 1 } } }) })],
  ['with owners that are text', review('sandboxclaims', { object: claim({ metadata: { ownerReferences: ['x'] } }) })],
  ['for an update without an old object', review('sandboxclaims', { operation: 'UPDATE', object: claim() })],
  ['for a deletion without an old object', review('sandboxclaims', { operation: 'DELETE', object: claim() })],
]
for (const [what, body] of odd) {
  t.test(`a review ${what} is refused with 400 and its uid`, async (t) => {
    t.match(await buildGate().ask(claims, body), { uid: 'u-1', allowed: false, status: { code: 400 } })
  })
}

t.test('an exception in the rules, the facts or the mutation is a refusal with 500', async (t) => {
  const fail = () => {
    throw new Error('defect')
  }
  const gates = [
    buildGate({ judgement: { ...realJudgement, evaluate: fail } }),
    buildGate({ facts: { gather: async () => fail(), confirm: async () => fail(), noteClaimCreated: fail } }),
    buildGate({ config: fail }),
  ]
  for (const gate of gates) {
    const answer = await gate.ask(claims, created)
    t.match(answer, { uid: 'u-1', allowed: false, status: { code: 500, reason: 'InternalError' } })
    t.notMatch(answer.status?.message, /defect/, 'what went wrong is for the log')
  }
  t.match(await buildGate({ mutate: fail }).ask('/mutate/claims', created), { allowed: false, status: { code: 500 } })
})

t.test('an unknown path, method or encoding is a refusal with 200', async (t) => {
  const { app } = buildGate()
  const refused = { allowed: false, status: { code: 400 } }
  t.match(responseIn(await app.inject({ method: 'POST', url: '/nowhere', payload: created })), refused)
  t.match(responseIn(await app.inject({ method: 'GET', url: claims })), refused)
  t.match(responseIn(await app.inject({ method: 'POST', url: '/%zz', payload: created })), refused)
  const headers = { 'content-type': 'nonsense' }
  t.match(responseIn(await app.inject({ method: 'POST', url: claims, headers, payload: '{}' })), refused)
})

t.test('the content type does not matter, not even an absent one', async (t) => {
  const { app } = judging()
  for (const headers of [{}, { 'content-type': 'text/plain' }, { 'content-type': 'application/json; charset=utf-8' }]) {
    const answer = await app.inject({
      method: 'POST',
      url: claims,
      headers,
      payload: Buffer.from(JSON.stringify(created)),
    })
    t.match(responseIn(answer), { uid: 'u-1', allowed: true })
  }
})

t.test('a review of two objects of 3 MiB is judged, one beyond 8 MiB refused with 200', async (t) => {
  const gate = judging()
  const big = (bytes: number) => claim({ metadata: { name: 'c', annotations: { big: 'x'.repeat(bytes) } } })
  const mebibyte = 1024 * 1024
  const large = review('sandboxclaims', {
    operation: 'UPDATE',
    object: big(3 * mebibyte),
    oldObject: big(3 * mebibyte),
  })
  t.match(await gate.ask(claims, large), { uid: 'u-1', allowed: true })
  const tooLarge = review('sandboxclaims', { object: big(9 * mebibyte) })
  t.match(await gate.ask(claims, tooLarge), { uid: '', allowed: false, status: { code: 400 } })
})

t.test('a __proto__ key is neither an error nor a prototype', async (t) => {
  const seen: unknown[] = []
  const gate = buildGate({
    judgement: {
      ...realJudgement,
      evaluate: ({ object }) => {
        seen.push(object)
        return []
      },
    },
  })
  for (const key of ['__proto__', '\\u005f_proto__', '__\\u0070roto__']) {
    const text = JSON.stringify(
      review('sandboxclaims', { object: claim({ spec: { warmPoolRef: { name: 'p' }, KEY: { polluted: 1 } } }) }),
    )
    t.match(await gate.ask(claims, text.replace('KEY', key)), { uid: 'u-1', allowed: true })
  }
  for (const object of seen as { spec: Record<string, unknown> }[]) {
    t.equal(object.spec['polluted'], undefined)
    t.strictSame(Object.getOwnPropertyNames(object.spec), ['warmPoolRef'])
  }
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
})

t.test('fields that no schema knows reach the rules as they are', async (t) => {
  const spec = { warmPoolRef: { name: 'p', extra: '5' }, unknown: [1, '1', null, true] }
  let seen: unknown
  const gate = buildGate({
    judgement: {
      ...realJudgement,
      evaluate: ({ object }) => {
        seen = object
        return []
      },
    },
  })
  await gate.ask(claims, review('sandboxclaims', { object: claim({ spec }) }))
  t.strictSame(seen, claim({ spec }))
})

t.test('a /scale review is judged as its pool, by the replicas that it asks for', async (t) => {
  const config = {
    ...defaultConfig,
    pools: { maxBatch: 1, readinessGraceSeconds: 1, maxReplicas: 5 },
  }
  const gate = buildGate({ config: () => config })
  const scale = (replicas: number) => ({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'p', namespace: 'ns' },
    spec: { replicas },
  })
  for (const plural of ['sandboxwarmpools', 'sandboxsets']) {
    const ask = (replicas: number) =>
      gate.ask(
        '/validate/scale',
        review(`${plural}/scale`, { operation: 'UPDATE', object: scale(replicas), oldObject: scale(1) }),
      )
    t.match(await ask(5), { allowed: true })
    t.match(await ask(6), { allowed: false, status: { details: { causes: [{ reason: 'pool/replicas-cap' }] } } })
  }
})

t.test('ephemeral containers are judged in both forms, the old one by the Pod that the facts know', async (t) => {
  const ephemeralContainers = [{ name: 'debug', image: 'x', securityContext: { privileged: true } }]
  const metadata = { name: 'p', namespace: 'ns' }
  const marked = { ...metadata, labels: { [labels.sandboxNameHash]: 'x' } }
  const pod = { metadata: marked, spec: { containers: [{ name: 'main' }] } }
  const ask = (object: unknown, oldObject: unknown, known: Parameters<typeof buildGate>[0]) =>
    buildGate(known).ask(
      '/validate/debug',
      review('pods/ephemeralcontainers', { operation: 'UPDATE', object, oldObject }),
    )
  const facts = fixedFacts({ pod: { kind: 'found', value: pod } })
  const old = { apiVersion: 'v1', kind: 'EphemeralContainers', metadata }
  const refused = { allowed: false, status: { details: { causes: [{ reason: 'pod/ephemeral-container' }] } } }
  t.match(await ask({ ...old, ephemeralContainers }, { ...old, ephemeralContainers: [] }, { facts }), refused)
  t.match(await ask({ ...old, ephemeralContainers }, { ...old, ephemeralContainers: [] }, {}), { allowed: true })
  const current = { ...pod, spec: { ...pod.spec, ephemeralContainers } }
  t.match(await ask(current, pod, {}), refused)
})
