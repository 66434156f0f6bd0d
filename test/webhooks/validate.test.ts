import { pino } from 'pino'
import t from 'tap'
import { annotations } from '../../src/api/vocabulary.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import type { Facts, Finding, Rule, RuleContext } from '../../src/policy/rule.ts'
import { refusedReason } from '../../webhooks/validate.ts'
import { buildGate, claim, fixedFacts, realJudgement, review, template } from './reviews.ts'
import { buildFacts } from './stores.ts'

const claims = '/validate/claims'
const refusal: Finding = {
  rule: 'claim/env-policy',
  field: 'spec.env',
  message: 'spec.env: no. (claim/env-policy)',
  mode: 'enforce',
}
const created = (object: KubeObject, rest: Record<string, unknown> = {}) => review('sandboxclaims', { object, ...rest })
const python = {
  metadata: { name: 'python', namespace: 'ns' },
  spec: { podTemplate: { spec: { containers: [{ name: 'main' }] } } },
}
const pool = {
  metadata: { name: 'pool', namespace: 'ns' },
  spec: { replicas: 1, sandboxTemplateRef: { name: 'python' } },
}
const withEnv = claim({ spec: { warmPoolRef: { name: 'pool' }, env: [{ name: 'A', value: '1' }] } })

t.test('finalizers come off an object that is being deleted, whatever it breaks', async (t) => {
  const gate = buildGate({ facts: fixedFacts({ template: { kind: 'found', value: python } }) })
  const going = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x/y'] }
  const dying = { ...withEnv, metadata: { ...withEnv.metadata, ...going } }
  const leaving = { ...dying, metadata: { ...dying.metadata, finalizers: [] } }
  t.match(await gate.ask(claims, created(leaving, { operation: 'UPDATE', oldObject: dying })), { allowed: true })
  const misshapen = { operation: 'UPDATE', oldObject: { ...dying, spec: null } }
  const real = buildGate({ facts: buildFacts().facts })
  t.match(await real.ask(claims, created({ ...leaving, spec: null } as never, misshapen)), { allowed: true })
  const forged = {
    operation: 'UPDATE',
    oldObject: { ...dying, metadata: withEnv.metadata, spec: { warmPoolRef: { name: 'pool' } } },
  }
  t.match(await gate.ask(claims, created(leaving, forged)), { allowed: false }, 'a forged timestamp does not help')
  t.match(await gate.ask(claims, created(dying)), { allowed: false }, 'nor does it at creation')

  const stamped = { ...dying, metadata: { ...dying.metadata, annotations: { 'sandgate.dev/requested-by': 'jane' } } }
  const restamped = { ...dying, metadata: { ...dying.metadata, annotations: { 'sandgate.dev/requested-by': 'bob' } } }
  const answer = await gate.ask(claims, created(restamped, { operation: 'UPDATE', oldObject: stamped }))
  t.match(answer, { allowed: false, status: { message: /claim\/reserved-keys/ } }, 'integrity holds to the end')
})

t.test(
  'an update that changes nothing the rules look at is allowed on an object in violation, with a warning',
  async (t) => {
    const facts = fixedFacts({ pool: { kind: 'found', value: pool }, template: { kind: 'found', value: python } })
    const gate = buildGate({ facts })
    t.match(await gate.ask(claims, created(withEnv)), { allowed: false })
    const labelled = { ...withEnv, metadata: { ...withEnv.metadata, labels: { mine: '1' } } }
    const answer = await gate.ask(claims, created(labelled, { operation: 'UPDATE', oldObject: withEnv }))
    t.match(answer, {
      allowed: true,
      warnings: [/claim\/env-policy/],
      auditAnnotations: { 'would-deny': 'claim/env-policy' },
    })
  },
)

t.test(
  'a refusal that rests on a cached template is confirmed by reading it, and withdrawn when it was old',
  async (t) => {
    const { facts, stores, client } = buildFacts()
    stores.namespaces.set({ metadata: { name: 'ns' } })
    stores.warmPools.set(pool)
    stores.templates.set(python)
    const gate = buildGate({ facts })
    client.objects.set('sandboxwarmpools/ns/pool', pool)
    client.objects.set('sandboxtemplates/ns/python', python)
    t.match(await gate.ask(claims, created(withEnv)), { allowed: false })
    const allowing = { ...python, spec: { ...python.spec, envVarsInjectionPolicy: 'Allowed' } }
    client.objects.set('sandboxtemplates/ns/python', allowing)
    t.match(await gate.ask(claims, created(withEnv)), { allowed: true })
  },
)

t.test('a change that is allowed is not confirmed', async (t) => {
  const { facts, stores, client } = buildFacts()
  stores.namespaces.set({ metadata: { name: 'ns' } })
  stores.warmPools.set(pool)
  stores.templates.set(python)
  t.match(await buildGate({ facts }).ask(claims, created(claim())), { allowed: true })
  t.strictSame(client.asked, [])
})

t.test('template, pool and claim in one apply: the claim is let in before the caches have either', async (t) => {
  const { facts, client } = buildFacts()
  client.objects.set('sandboxwarmpools/ns/pool', pool)
  client.objects.set('sandboxtemplates/ns/python', python)
  t.strictSame(await buildGate({ facts }).ask(claims, created(claim())), { uid: 'u-1', allowed: true })
})

t.test('a lookup that hangs costs the budget and not more, and never a refusal', async (t) => {
  for (const [query, waitMs] of [
    ['', 1000],
    ['?timeout=1s', 500],
    ['?timeout=nonsense', 1000],
  ] as const) {
    const { facts, client, stores } = buildFacts()
    stores.namespaces.set({ metadata: { name: 'ns' } })
    client.objects.set('sandboxwarmpools/ns/pool', 'slow')
    const { clock, ask } = buildGate({
      facts,
    })
    let isAnswered = false
    const answer = ask(claims + query, created(claim())).finally(() => (isAnswered = true))
    while (clock.pendingTimers === 0) await clock.advance(0)
    await clock.advance(waitMs - 1)
    t.notOk(isAnswered)
    await clock.advance(1)
    t.match(await answer, { allowed: true })
  }
})

function traced(findings: Finding[]) {
  const facts = fixedFacts({})
  const refusals: unknown[] = []
  const events: unknown[] = []
  const lines: { level: number; rule?: string }[] = []
  const log = pino(
    { level: 'info' },
    { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[0]) },
  )
  const gate = buildGate({
    judgement: { ...realJudgement, evaluate: () => findings },
    facts,
    log,
    metrics: { admissionRefusals: { inc: (labels) => void refusals.push(labels) } },
    events: {
      record: (object, type, reason, message) =>
        void events.push({ kind: object.kind, name: object.metadata.name, type, reason, message }),
    },
  })
  return { gate, facts, refusals, events, lines }
}

t.test('a refusal is counted once for each rule, and told in an Event', async (t) => {
  const { gate, refusals, events, facts } = traced([refusal, refusal, { ...refusal, rule: 'claim/name' }])
  await gate.ask(claims, created(claim()))
  t.strictSame(refusals.map((each) => (each as { rule: string }).rule).toSorted(), ['claim/env-policy', 'claim/name'])
  const message = `3 problems: ${[1, 2, 3].map(() => refusal.message).join('; ')}`
  t.strictSame(events, [{ kind: 'SandboxClaim', name: 'c', type: 'Warning', reason: refusedReason, message }])
  t.strictSame(facts.created, [], 'and takes no quota')
})

t.test('the Event of a single refusal says what the answer says', async (t) => {
  const { gate, events } = traced([refusal])
  const { status } = await gate.ask(claims, created(claim()))
  t.match(events, [{ message: status?.message }])
})

t.test('a claim that is let in counts towards its user, nothing else does', async (t) => {
  const { gate, facts, events } = traced([])
  await gate.ask(claims, created(claim()))
  await gate.ask(claims, created(claim(), { operation: 'UPDATE', oldObject: claim() }))
  await gate.ask('/validate/templates', review('sandboxtemplates', { object: template() }))
  t.strictSame(facts.created, ['alice'])
  t.strictSame(events, [])
})

t.test('a dry-run gets the same verdict and leaves no trace', async (t) => {
  const refused = traced([refusal])
  const real = await refused.gate.ask(claims, created(claim()))
  const dry = traced([refusal])
  t.strictSame(await dry.gate.ask(claims, created(claim(), { dryRun: true })), real)
  t.strictSame([dry.refusals, dry.events, dry.lines], [[], [], []])
  const allowed = traced([])
  await allowed.gate.ask(claims, created(claim(), { dryRun: true }))
  t.strictSame(allowed.facts.created, [])
})

t.test('audited rules and broken glass are logged, refusals and warnings are not', async (t) => {
  const { gate, lines } = traced([
    refusal,
    { ...refusal, rule: 'a/warn', mode: 'warn' },
    { ...refusal, rule: 'a/audit', mode: 'audit' },
    { ...refusal, rule: 'a/glass', mode: 'warn', lowered: 'break-glass' },
  ])
  await gate.ask(claims, created(claim()))
  t.strictSame(lines.map(({ level, rule }) => `${level} ${rule}`).toSorted(), ['30 a/audit', '40 a/glass'])
})

t.test('an object without the shape of its kind is invalid, with the fields that are wrong', async (t) => {
  const answer = await buildGate().ask(claims, created(claim({ spec: { warmPoolRef: { name: 7 } } })))
  t.match(answer, {
    allowed: false,
    status: { code: 422, reason: 'Invalid', details: { causes: [{ field: 'spec.warmPoolRef.name' }] } },
  })
})

t.test('the rules are told the time of the API server, the configuration and the namespace labels', async (t) => {
  const seen: [RuleContext, unknown][] = []
  const evaluate = (_subject: unknown, context: RuleContext, namespace: unknown, _rules?: readonly Rule[]) => {
    seen.push([context, namespace])
    return []
  }
  const facts: Facts = { sandboxOfName: { kind: 'missing' } }
  const { ask, clock } = buildGate({
    judgement: { ...realJudgement, evaluate },
    facts: fixedFacts(facts, { namespaceLabels: { a: 'b' } }),
    serverClockOffsetMs: () => 250,
  })
  await ask(claims, created(claim()))
  t.match(seen, [[{ now: clock.now() + 250, facts }, { labels: { a: 'b' } }]])
})

t.test('with generateName there is no name when mutating, and the final one is judged when validating', async (t) => {
  const gate = buildGate()
  const generated = claim({ metadata: { generateName: 'x-', namespace: 'ns' } })
  t.match(await gate.ask('/mutate/claims', created(generated, { name: '' })), { allowed: true })
  const named = claim({ metadata: { name: 'x'.repeat(64), generateName: 'x-', namespace: 'ns' } })
  const answer = await gate.ask(claims, created(named, { name: '' }))
  t.match(answer, { allowed: false, status: { details: { name: 'x'.repeat(64), causes: [{ reason: 'claim/name' }] } } })
})

t.test('our own stamps pass validation after mutation', async (t) => {
  const stamped = claim({
    metadata: { name: 'c', namespace: 'ns', annotations: { [annotations.requestedBy]: 'alice' } },
  })
  t.match(await buildGate().ask(claims, created(stamped)), { allowed: true })
})
