import t from 'tap'
import { evaluate } from '../../src/policy/evaluate.ts'
import type { RuleContext, Subject } from '../../src/policy/rule.ts'
import { claim, configWith, context, now, sandbox, subject, template } from './subjects.ts'

/** Messages of one rule. */
function messagesOf(rule: string, given: Subject, around: RuleContext = context()): string[] {
  return evaluate(given, around, {}).flatMap((finding) => (finding.rule === rule ? [finding.message] : []))
}

t.test('a variable for a container that is missing is the business of claim/env-container alone', async (t) => {
  const given = subject('SandboxClaim', claim({ env: [{ name: 'A', containerName: 'none' }] }))
  const facts = { template: { kind: 'found', value: template({ envVarsInjectionPolicy: 'Allowed' }) } } as const
  t.same(
    evaluate(given, context(facts), {}).map(({ rule }) => rule),
    ['claim/env-container'],
  )
})

t.test('an empty containerName means the first container, as the API server may store it', async (t) => {
  const value = template({ envVarsInjectionPolicy: 'Allowed' })
  value.spec.podTemplate.spec.containers[0]!.env = [{ name: 'LANG', value: 'C' }]
  const given = subject('SandboxClaim', claim({ env: [{ name: 'LANG', containerName: '' }] }))
  const found = evaluate(given, context({ template: { kind: 'found', value } }), {})
  t.same(
    found.map(({ rule }) => rule),
    ['claim/env-override'],
  )
})

t.test('without a template the first container has no name, and repetition is still seen', async (t) => {
  const given = subject('SandboxClaim', claim({ env: [{ name: 'A' }, { name: 'A' }] }))
  t.match(messagesOf('claim/env-name', given), [/A appears twice for container \(the first\)/])
})

t.test('all violations come in one answer', async (t) => {
  const env = [{ name: 'LD_PRELOAD' }, { name: '1' }, { name: 'BASH_ENV' }]
  t.equal(evaluate(subject('SandboxClaim', claim({ env })), context(), {}).length, 3)
})

t.test('with no label domains at all no label is allowed, and none is suggested', async (t) => {
  const config = configWith((c) => (c.admission.labelDomains = []))
  const given = subject('SandboxClaim', claim({ additionalPodMetadata: { labels: { 'sandbox.users.io/a': 'b' } } }))
  t.match(messagesOf('claim/label-domain', given, context({}, config)), [/only in no domain\. \(claim/])
})

t.test('a label with a malformed key and an annotation with one are refused', async (t) => {
  const given = subject(
    'SandboxClaim',
    claim({ additionalPodMetadata: { labels: { 'sandbox.users.io/a b': 'c' }, annotations: { 'a b': 'c' } } }),
  )
  t.match(messagesOf('claim/label-domain', given), [/not a valid label/])
  t.match(messagesOf('claim/annotation-domain', given), [/not a valid annotation key/])
})

t.test('an annotation that the template sets differently is a conflict, too', async (t) => {
  const value = template()
  value.spec.podTemplate.metadata = { annotations: { note: 'theirs' } }
  const given = subject('SandboxClaim', claim({ additionalPodMetadata: { annotations: { note: 'mine' } } }))
  t.match(messagesOf('claim/metadata-conflict', given, context({ template: { kind: 'found', value } })), [
    /annotations\['note'\]: template python sets it to "theirs"/,
  ])
})

t.test('controllers and trusted users write reserved keys on claims', async (t) => {
  const marked = claim({}, { annotations: { 'agents.x-k8s.io/sandbox-name': 'x' } })
  for (const actor of ['controller', 'trusted'] as const) {
    t.same(messagesOf('claim/reserved-keys', subject('SandboxClaim', marked, { actor })), [])
  }
  for (const actor of ['collector', 'user', 'break-glass'] as const) {
    t.equal(messagesOf('claim/reserved-keys', subject('SandboxClaim', marked, { actor })).length, 1, actor)
  }
})

t.test('the stamps are not accepted as labels, nor on an update', async (t) => {
  const stamps = { 'agents.x-k8s.io/webhook-first-observed-at': 'x' }
  t.equal(messagesOf('claim/reserved-keys', subject('SandboxClaim', claim({}, { labels: stamps }))).length, 1)
  const added = subject('SandboxClaim', claim({}, { annotations: stamps }), { oldObject: claim() })
  t.equal(messagesOf('claim/reserved-keys', added).length, 1)
})

t.test('the spec may change under each reason that waits for it, and under no other', async (t) => {
  const changed = (reason: string, status: 'True' | 'False') => {
    const lastTransitionTime = '2026-01-01T00:00:00Z'
    const oldObject = claim()
    oldObject.status = { conditions: [{ type: 'Ready', status, reason, message: '', lastTransitionTime }] }
    const given = subject('SandboxClaim', claim({ warmPoolRef: { name: 'other' } }), { oldObject })
    return messagesOf('claim/spec-immutable', given).length
  }
  const editable = [
    'WarmPoolNotFound',
    'TemplateNotFound',
    'InvalidMetadata',
    'EnvVarsInjectionRejected',
    'VolumeClaimTemplatesError',
  ]
  for (const reason of editable) t.equal(changed(reason, 'False'), 0, reason)
  for (const reason of ['SandboxNotReady', 'ClaimExpired', 'AdoptionConflict'])
    t.equal(changed(reason, 'False'), 1, reason)
  t.equal(changed('InvalidMetadata', 'True'), 1)
  const unknownBefore = subject('SandboxClaim', claim(), { operation: 'UPDATE' })
  t.same(messagesOf('claim/spec-immutable', unknownBefore), [])
})

t.test('a claim with a generated name is judged by a name such as the server would choose', async (t) => {
  const generated = (generateName: string) =>
    messagesOf('claim/name', subject('SandboxClaim', { ...claim(), metadata: { generateName } })).length
  t.equal(generated('task-'), 0)
  t.equal(generated('t'.repeat(200)), 0, 'the server cuts it')
  t.equal(generated('task.'), 1)
  t.equal(messagesOf('claim/name', subject('SandboxClaim', { ...claim(), metadata: {} })).length, 1)
})

t.test("a Sandbox of the claim's name is its own when it controls it by UID", async (t) => {
  const owner = {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    name: 'task',
    uid: 'u',
    controller: true,
  }
  const value = sandbox({}, { ownerReferences: [owner] })
  const around = context({ sandboxOfName: { kind: 'found', value } })
  t.same(messagesOf('claim/name-taken', subject('SandboxClaim', claim({}, { uid: 'u' })), around), [])
  t.equal(messagesOf('claim/name-taken', subject('SandboxClaim', claim({}, { uid: 'v' })), around).length, 1)
  t.equal(messagesOf('claim/name-taken', subject('SandboxClaim', claim()), around).length, 1)
})

t.test('a pool that is unknown brings no warning, nor does the template of a missing one', async (t) => {
  const unknown = { kind: 'unknown', because: 'no answer in time' } as const
  const given = subject('SandboxClaim', claim())
  t.same(evaluate(given, context({ pool: unknown, template: unknown }), {}), [])
  const missing = { kind: 'missing' } as const
  t.same(
    evaluate(given, context({ pool: missing, template: missing }), {}).map(({ rule }) => rule),
    ['claim/pool-missing'],
  )
})

t.test('a lifetime counts from creation, give or take a minute of clock', async (t) => {
  const config = configWith((c) => (c.claims.maxLifetime = '1h'))
  const refused = (minutes: number, creationTimestamp?: string) => {
    const shutdownTime = new Date(now + minutes * 60_000).toISOString()
    const given = claim({ lifecycle: { shutdownTime } }, { ...(creationTimestamp && { creationTimestamp }) })
    return messagesOf('claim/expiry', subject('SandboxClaim', given), context({}, config)).length
  }
  t.equal(refused(61), 0)
  t.equal(refused(62), 1)
  t.equal(refused(31, '2025-12-31T23:30:00Z'), 0)
  t.equal(refused(32, '2025-12-31T23:30:00Z'), 1)
})

t.test('a shutdownTime of this very moment, or that is no time, is refused', async (t) => {
  for (const shutdownTime of ['2026-01-01T00:00:00Z', 'tomorrow']) {
    const given = subject('SandboxClaim', claim({ lifecycle: { shutdownTime } }))
    t.match(messagesOf('claim/expiry', given), [/is not in the future/])
  }
})

t.test('an expired claim can be labelled, but not be given another time in the past', async (t) => {
  const expired = (shutdownTime: string) => claim({ lifecycle: { shutdownTime } })
  const modes = (to: string) =>
    evaluate(subject('SandboxClaim', expired(to), { oldObject: expired('2020-01-01T00:00:00Z') }), context(), {}).map(
      ({ mode }) => mode,
    )
  t.same(modes('2020-01-01T00:00:00Z'), ['warn'])
  t.same(modes('2021-01-01T00:00:00Z'), ['enforce'])
  t.same(modes('2027-01-01T00:00:00Z'), [])
})

t.test('an allowed volume may have a name that only an emptyDir of the template has', async (t) => {
  const volume = (volumes: { name: string; emptyDir?: object; configMap?: object }[]) => {
    const value = template({ volumeClaimTemplatesPolicy: 'Allowed' })
    value.spec.podTemplate.spec.volumes = volumes
    const given = subject('SandboxClaim', claim({ volumeClaimTemplates: [{ metadata: { name: 'd' }, spec: {} }] }))
    return messagesOf('claim/volume-override', given, context({ template: { kind: 'found', value } })).length
  }
  t.equal(volume([]), 0)
  t.equal(volume([{ name: 'd', emptyDir: {} }]), 0)
  t.equal(volume([{ name: 'd', configMap: {} }]), 1)
})
