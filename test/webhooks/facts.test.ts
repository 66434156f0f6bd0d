import t from 'tap'
import type { Pod } from '../../src/api/core.ts'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate, SandboxWarmPool } from '../../src/api/kinds.ts'
import type { Subject } from '../../src/policy/rule.ts'
import { startDeadline } from '../../webhooks/deadline.ts'
import { buildFacts, kubeError } from './stores.ts'

const namespace = 'ns'
const pool: SandboxWarmPool = {
  metadata: { name: 'pool', namespace },
  spec: { replicas: 1, sandboxTemplateRef: { name: 'python' } },
}
const template: SandboxTemplate = {
  metadata: { name: 'python', namespace },
  spec: { podTemplate: { spec: { containers: [] } }, envVarsInjectionPolicy: 'Allowed' },
}
const inlineSet: SandboxSet = {
  metadata: { name: 'set', namespace },
  spec: { replicas: 1, template: { spec: { containers: [] } } },
}
const claim: SandboxClaim = { metadata: { name: 'c', namespace }, spec: { warmPoolRef: { name: 'pool' } } }

const subject = (kind: Subject['kind'], object: Subject['object'], rest: Partial<Subject> = {}): Subject => ({
  kind,
  object,
  operation: 'CREATE',
  namespace,
  actor: 'user',
  username: 'alice',
  ...rest,
})

function setUp(changes: Parameters<typeof buildFacts>[0] = {}) {
  const parts = buildFacts(changes)
  parts.stores.namespaces.set({ metadata: { name: namespace, labels: { team: 'x' } } })
  const deadline = startDeadline(parts.clock, 1000)
  return {
    ...parts,
    deadline,
    gather: (asked: Subject) => parts.facts.gather(asked, deadline),
  }
}

t.test('a claim on a cached pool and template costs no read', async (t) => {
  const { stores, client, gather } = setUp()
  stores.warmPools.set(pool)
  stores.templates.set(template)
  const { facts, namespaceLabels, mayBeOld } = await gather(subject('SandboxClaim', claim))
  t.strictSame(facts.pool, { kind: 'found', value: pool })
  t.strictSame(facts.template, { kind: 'found', value: template })
  t.strictSame(facts.sandboxOfName, { kind: 'missing' })
  t.strictSame(namespaceLabels, { team: 'x' })
  t.equal(mayBeOld, true)
  t.strictSame(client.asked, [])
})

t.test('a pool and a template that the caches lack are each looked for once', async (t) => {
  const { client, gather } = setUp()
  client.objects.set('sandboxwarmpools/ns/pool', pool)
  client.objects.set('sandboxtemplates/ns/python', template)
  const { facts } = await gather(subject('SandboxClaim', claim))
  t.strictSame(
    [facts.pool, facts.template],
    [
      { kind: 'found', value: pool },
      { kind: 'found', value: template },
    ],
  )
  t.strictSame(client.asked, ['sandboxwarmpools/ns/pool', 'sandboxtemplates/ns/python'])
})

t.test('what a read does not find is missing, and nothing is said of a template behind a missing pool', async (t) => {
  const { stores, gather } = setUp()
  const unknownPool = await gather(subject('SandboxClaim', claim))
  t.strictSame(unknownPool.facts.pool, { kind: 'missing' })
  t.equal(unknownPool.facts.template, undefined)
  stores.warmPools.set(pool)
  t.strictSame((await gather(subject('SandboxClaim', claim))).facts.template, { kind: 'missing' })
  t.strictSame((await gather(subject('SandboxWarmPool', pool))).facts.template, { kind: 'missing' })
})

t.test('a read that fails or is slow leaves the fact unknown, and the answer in time', async (t) => {
  const { client, clock, gather } = setUp()
  client.objects.set('sandboxwarmpools/ns/pool', kubeError('ServerError', 500, { message: 'etcd is away' }))
  t.strictSame((await gather(subject('SandboxClaim', claim))).facts.pool, { kind: 'unknown', because: 'etcd is away' })
  client.objects.set('sandboxwarmpools/ns/pool', 'slow')
  const slow = gather(subject('SandboxClaim', claim))
  await clock.advance(1000)
  t.strictSame((await slow).facts.pool, { kind: 'unknown', because: 'no answer in time' })
})

t.test('a claim on a set is judged by its inline template, or by the one that it refers to', async (t) => {
  const { stores, gather } = setUp()
  stores.sets.set(inlineSet)
  stores.templates.set(template)
  const onSet = (name: string) =>
    gather(subject('SandboxClaim', { ...claim, spec: { warmPoolRef: { kind: 'SandboxSet', name } } }))
  t.match((await onSet('set')).facts.template, {
    kind: 'found',
    value: { metadata: { name: 'set' }, spec: { envVarsInjectionPolicy: 'Disallowed' } },
  })
  stores.sets.set({ metadata: { name: 'ref', namespace }, spec: { replicas: 1, templateRef: { name: 'python' } } })
  t.strictSame((await onSet('ref')).facts.template, { kind: 'found', value: template })
})

t.test('before a refusal the pool, the template and the namespace are read anew', async (t) => {
  const { stores, client, gather, facts, deadline } = setUp()
  stores.warmPools.set(pool)
  stores.templates.set(template)
  const earlier = await gather(subject('SandboxClaim', claim))
  const newer = { ...template, spec: { ...template.spec, envVarsInjectionPolicy: 'Overrides' as const } }
  client.objects.set('sandboxwarmpools/ns/pool', pool)
  client.objects.set('sandboxtemplates/ns/python', newer)
  client.objects.set('namespaces/ns', { metadata: { name: namespace, labels: { team: 'y' } } })
  const confirmed = await facts.confirm(subject('SandboxClaim', claim), earlier, deadline)
  t.strictSame(confirmed.facts, { ...earlier.facts, template: { kind: 'found', value: newer } })
  t.strictSame(confirmed.namespaceLabels, { team: 'y' })
  t.equal(confirmed.mayBeOld, false)
  t.strictSame(client.asked.toSorted(), ['namespaces/ns', 'sandboxtemplates/ns/python', 'sandboxwarmpools/ns/pool'])
})

t.test('a namespace that the cache lacks makes a refusal worth confirming', async (t) => {
  const { facts, deadline, client } = buildFactsWithDeadline()
  const sandbox = subject('Sandbox', {
    metadata: { name: 's', namespace },
    spec: { podTemplate: { spec: { containers: [] } } },
  })
  const earlier = await facts.gather(sandbox, deadline)
  t.equal(earlier.mayBeOld, true)
  client.objects.set('namespaces/ns', { metadata: { name: namespace, labels: { 'sandgate.dev/admission': 'warn' } } })
  const { namespaceLabels } = await facts.confirm(sandbox, earlier, deadline)
  t.strictSame(namespaceLabels, { 'sandgate.dev/admission': 'warn' })
})

function buildFactsWithDeadline() {
  const parts = buildFacts()
  return { ...parts, deadline: startDeadline(parts.clock, 1000) }
}

t.test('quotas are counted only when they are configured', async (t) => {
  const { facts } = await setUp().gather(subject('SandboxClaim', claim))
  t.notOk('claimsInNamespace' in facts || 'claimsByUserLastMinute' in facts)
})

t.test('live claims of the namespace are counted, without this one, the finished and the leaving', async (t) => {
  const { stores, gather } = setUp({ claims: { maxPerNamespace: 5 } })
  const named = (name: string, rest: Partial<SandboxClaim> = {}) =>
    stores.claims.set({ ...claim, ...rest, metadata: { name, namespace, ...rest.metadata } })
  named('c')
  named('live')
  named('leaving', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
  const finished = { type: 'Finished', status: 'True' as const, reason: 'x', message: '', lastTransitionTime: '' }
  named('finished', { status: { conditions: [finished] } })
  named('elsewhere', { metadata: { namespace: 'other' } })
  const { facts } = await gather(subject('SandboxClaim', claim))
  t.equal(facts.claimsInNamespace, 1)
})

t.test('creations of the last minute are counted by user', async (t) => {
  const { facts, clock, gather } = setUp({ claims: { maxCreatesPerMinute: 5 } })
  facts.noteClaimCreated('alice')
  await clock.advance(30_000)
  facts.noteClaimCreated('alice')
  facts.noteClaimCreated('bob')
  const counted = async () => (await gather(subject('SandboxClaim', claim))).facts.claimsByUserLastMinute
  t.equal(await counted(), 2)
  await clock.advance(30_000)
  t.equal(await counted(), 1)
  await clock.advance(30_000)
  t.equal(await counted(), 0)
})

t.test('a template hears of the NetworkPolicy of its name, and at deletion of the pools that use it', async (t) => {
  const { stores, gather } = setUp()
  const policy = { metadata: { name: 'python-network-policy', namespace } }
  stores.networkPolicies.set(policy)
  t.strictSame((await gather(subject('SandboxTemplate', template))).facts.networkPolicy, {
    kind: 'found',
    value: policy,
  })
  stores.warmPools.set(pool)
  stores.sets.set({ metadata: { name: 'ref', namespace }, spec: { replicas: 1, templateRef: { name: 'python' } } })
  const { facts } = await gather(subject('SandboxTemplate', template, { operation: 'DELETE' }))
  t.strictSame(facts, { poolsOfTemplate: ['pool', 'ref'] })
})

t.test('a set with an inline template hears of its own NetworkPolicy', async (t) => {
  const { stores, gather } = setUp()
  const policy = { metadata: { name: 'set-set-network-policy', namespace } }
  stores.networkPolicies.set(policy)
  t.strictSame((await gather(subject('SandboxSet', inlineSet))).facts.networkPolicy, { kind: 'found', value: policy })
})

t.test('the claim of a collected Sandbox is read from the API server, never from the cache', async (t) => {
  const { stores, client, gather } = setUp()
  const owner = { apiVersion: 'x/v1', kind: 'SandboxClaim', name: 'c', uid: 'u', controller: true }
  const sandbox: Sandbox = {
    metadata: { name: 's', namespace, ownerReferences: [owner] },
    spec: { podTemplate: { spec: { containers: [] } } },
  }
  stores.claims.set(claim)
  const collected = subject('Sandbox', sandbox, { operation: 'DELETE', actor: 'collector' })
  t.strictSame((await gather(collected)).facts.owningClaim, { kind: 'missing' })
  client.objects.set('sandboxclaims/ns/c', claim)
  t.strictSame((await gather(collected)).facts.owningClaim, { kind: 'found', value: claim })
  client.asked.length = 0
  await gather({ ...collected, actor: 'user' })
  t.strictSame(client.asked, [], "a user's deletion costs no read")
})

t.test('the Pod of ephemeral containers comes from the cache, or by a read', async (t) => {
  const { stores, client, gather } = setUp()
  const pod: Pod = { metadata: { name: 'p', namespace, labels: { a: 'b' } } }
  const debug = subject(
    'Pod',
    { metadata: { name: 'p', namespace } },
    { operation: 'UPDATE', subresource: 'ephemeralcontainers' },
  )
  t.strictSame((await gather(debug)).facts.pod, { kind: 'missing' })
  stores.pods.set(pod)
  t.strictSame((await gather(debug)).facts.pod, { kind: 'found', value: pod })
  t.strictSame(client.asked, ['pods/ns/p'])
})

t.test('/scale needs no facts', async (t) => {
  const { client, gather } = setUp()
  const scale = subject('SandboxWarmPool', pool, { operation: 'UPDATE', subresource: 'scale' })
  t.strictSame((await gather(scale)).facts, {})
  t.strictSame(client.asked, [])
})
