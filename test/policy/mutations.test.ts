import * as fc from 'fast-check'
import t from 'tap'
import { mutate, observedToleranceMs } from '../../src/policy/mutations.ts'
import type { Subject } from '../../src/policy/rule.ts'
import { claim, configWith, now, sandbox, subject, template } from './subjects.ts'
import { loadFixtures } from './fixture.ts'

const config = configWith(() => {})
const withDefaults = configWith((c) => {
  c.claims.defaultLifetime = '1h'
  c.claims.defaultTtlAfterFinished = '90s'
})
const by = (requestUser: string, more = {}) => ({ now, config, requestUser, ...more })

const requestedBy = 'sandgate.dev/requested-by'
const observedAt = 'agents.x-k8s.io/webhook-first-observed-at'

t.test('a new claim is stamped with who asked and when', async (t) => {
  t.same(mutate(subject('SandboxClaim', claim()), by('alice')).metadata.annotations, {
    [requestedBy]: 'alice',
    [observedAt]: '2026-01-01T00:00:00.000000000Z',
  })
})

t.test('who asked is overwritten, other annotations stay', async (t) => {
  const forged = claim({}, { annotations: { [requestedBy]: 'bob', note: 'x' } })
  t.match(mutate(subject('SandboxClaim', forged), by('alice')).metadata.annotations, {
    [requestedBy]: 'alice',
    note: 'x',
  })
})

t.test('an observation within 30 s is an earlier round and stays, one further off is forged', async (t) => {
  const stampOf = (ms: number) => {
    const given = claim({}, { annotations: { [observedAt]: new Date(ms).toISOString() } })
    return mutate(subject('SandboxClaim', given), by('alice')).metadata.annotations?.[observedAt]
  }
  t.equal(stampOf(now - observedToleranceMs), '2025-12-31T23:59:30.000Z')
  t.equal(stampOf(now + observedToleranceMs), '2026-01-01T00:00:30.000Z')
  t.equal(stampOf(now - observedToleranceMs - 1), '2026-01-01T00:00:00.000000000Z')
  t.equal(stampOf(now + observedToleranceMs + 1), '2026-01-01T00:00:00.000000000Z')
})

t.test('an observation that is no time is overwritten', async (t) => {
  const given = claim({}, { annotations: { [observedAt]: 'yesterday' } })
  t.equal(
    mutate(subject('SandboxClaim', given), by('a')).metadata.annotations?.[observedAt],
    '2026-01-01T00:00:00.000000000Z',
  )
})

t.test('lifecycle defaults come from the configuration, and only where none is given', async (t) => {
  const lifecycleOf = (given = {}, from = withDefaults) =>
    mutate(subject('SandboxClaim', claim(given)), by('alice', { config: from })).spec.lifecycle
  t.same(lifecycleOf(), { shutdownTime: '2026-01-01T01:00:00Z', ttlSecondsAfterFinished: 90 })
  const own = { shutdownTime: '2026-02-01T00:00:00Z', ttlSecondsAfterFinished: 0 }
  t.same(lifecycleOf({ lifecycle: own }), own)
  t.equal(lifecycleOf({}, config), undefined, 'off by default')
})

t.test('an update gets back the stamps that a replace dropped or an edit changed', async (t) => {
  const oldObject = claim({}, { annotations: { [requestedBy]: 'bob', [observedAt]: 'x' } })
  const dropped = mutate(subject('SandboxClaim', claim(), { oldObject }), by('alice'))
  t.same(dropped.metadata.annotations, { [requestedBy]: 'bob', [observedAt]: 'x' })
  const changed = claim({}, { annotations: { [requestedBy]: 'alice', note: 'x' } })
  const restored = mutate(subject('SandboxClaim', changed, { oldObject }), by('alice'))
  t.same(restored.metadata.annotations, { [requestedBy]: 'bob', [observedAt]: 'x', note: 'x' })
})

t.test('an update adds no stamp that the stored claim has not, nor lifecycle defaults', async (t) => {
  const updated = mutate(
    subject('SandboxClaim', claim(), { oldObject: claim() }),
    by('alice', { config: withDefaults }),
  )
  t.same(updated, claim())
  t.same(mutate(subject('SandboxClaim', claim(), { operation: 'UPDATE' }), by('alice')), claim())
})

t.test('a template gets the hash of its name as a label, whatever it said', async (t) => {
  const given = template()
  given.metadata.labels = { 'agents.x-k8s.io/sandbox-template-ref-hash': 'forged', team: 'red' }
  given.metadata.name = 'test-pool'
  t.same(mutate(subject('SandboxTemplate', given), by('alice')).metadata.labels, {
    'agents.x-k8s.io/sandbox-template-ref-hash': '59733166',
    team: 'red',
  })
})

t.test('a template whose name the server is yet to choose gets no label', async (t) => {
  const given = { ...template(), metadata: { generateName: 'python-' } }
  t.same(mutate(subject('SandboxTemplate', given), by('alice')), given)
})

t.test('a set gets 20% where it says nothing, and keeps 0', async (t) => {
  const strategyOf = (updateStrategy?: { maxUnavailable: number }) =>
    mutate(
      subject('SandboxSet', { metadata: {}, spec: { replicas: 1, ...(updateStrategy && { updateStrategy }) } }),
      by('alice'),
    ).spec.updateStrategy
  t.same(strategyOf(), { maxUnavailable: '20%' })
  t.same(strategyOf({ maxUnavailable: 0 }), { maxUnavailable: 0 })
})

t.test('a new Sandbox gets the secure defaults but no resolvers, an updated one nothing', async (t) => {
  const { spec } = mutate(subject('Sandbox', sandbox()), by('alice')).spec.podTemplate
  t.equal(spec.automountServiceAccountToken, false)
  t.equal(spec.dnsPolicy, undefined)
  t.same(mutate(subject('Sandbox', sandbox(), { oldObject: sandbox() }), by('alice')), sandbox())
})

t.test('what has no spec yet is left for the server to refuse', async (t) => {
  for (const object of [
    { metadata: {} },
    { metadata: {}, spec: null },
    { metadata: {}, spec: {} },
    { metadata: {}, spec: { podTemplate: null } },
  ]) {
    t.same(mutate(subject('Sandbox', object as never), by('alice')), object)
  }
})

t.test('deletions, subresources and objects being deleted come back as they are', async (t) => {
  const dying = claim({}, { deletionTimestamp: '2026-01-01T00:00:00Z' })
  const oldObject = claim({}, { ...dying.metadata, annotations: { [requestedBy]: 'bob' } })
  t.same(mutate(subject('SandboxClaim', dying, { oldObject }), by('alice')), dying)
  t.same(mutate(subject('SandboxClaim', claim(), { operation: 'DELETE' }), by('alice')), claim())
  t.same(mutate(subject('SandboxClaim', claim(), { subresource: 'scale' }), by('alice')), claim())
})

t.test('pools and Pods come back as they are', async (t) => {
  const pool = { metadata: { name: 'p' }, spec: { sandboxTemplateRef: { name: 'python' } } }
  t.same(mutate(subject('SandboxWarmPool', pool), by('alice')), pool)
  t.same(mutate(subject('Pod', { metadata: {}, spec: { containers: [] } }), by('alice')), {
    metadata: {},
    spec: { containers: [] },
  })
})

t.test('a second round within the tolerance changes nothing, and no round changes its subject', async (t) => {
  const fixtures = loadFixtures()
  fc.assert(
    fc.property(
      fc.constantFrom(...fixtures),
      fc.nat(observedToleranceMs),
      fc.constantFrom(config, withDefaults),
      (fixture, later, from) => {
        const before = structuredClone(fixture.subject)
        const once = mutate(fixture.subject, { now, config: from, requestUser: 'alice' })
        t.strictSame(fixture.subject, before)
        const again = { ...fixture.subject, object: once } as Subject
        t.strictSame(mutate(again, { now: now + later, config: from, requestUser: 'alice' }), once, fixture.path)
      },
    ),
    { numRuns: 200 },
  )
})
