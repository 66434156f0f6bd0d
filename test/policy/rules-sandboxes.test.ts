import t from 'tap'
import type { Pod } from '../../src/api/core.ts'
import type { Sandbox } from '../../src/api/kinds.ts'
import type { OwnerReference } from '../../src/kube/object.ts'
import { evaluate } from '../../src/policy/evaluate.ts'
import type { Actor, Facts, RuleContext, Subject } from '../../src/policy/rule.ts'
import { configWith, context, sandbox, subject } from './subjects.ts'

/** Messages of one rule. */
function messagesOf(rule: string, given: Subject, around: RuleContext = context()): string[] {
  return evaluate(given, around, {}).flatMap((finding) => (finding.rule === rule ? [finding.message] : []))
}

const owner = (kind: string, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind,
  name: 'x',
  uid: `uid-of-${kind}`,
  controller: true,
  blockOwnerDeletion: true,
  ...more,
})

t.test('owner references of a Sandbox: who may do what', async (t) => {
  const claimed = owner('SandboxClaim')
  const { blockOwnerDeletion: _dropped, ...unblocking } = claimed
  const rows: [what: string, before: OwnerReference[], after: OwnerReference[], allowed: Actor[]][] = [
    ['add a pool', [], [owner('SandboxWarmPool')], ['controller', 'trusted']],
    [
      'add a claim under a false API version',
      [],
      [owner('SandboxClaim', { apiVersion: 'v1' })],
      ['controller', 'trusted'],
    ],
    ['hand over from pool to claim', [owner('SandboxSet')], [claimed], ['controller', 'trusted']],
    ['change the UID', [claimed], [{ ...claimed, uid: 'other' }], ['controller', 'trusted']],
    ['make it no controller', [claimed], [{ ...claimed, controller: false }], ['controller', 'trusted']],
    ['stop blocking deletion', [claimed], [unblocking], ['controller', 'trusted', 'collector']],
    ['remove it', [claimed], [], ['controller', 'trusted', 'collector']],
    ['add a stranger beside a claim', [claimed], [claimed, owner('ConfigMap')], ['controller', 'trusted']],
    ['add a stranger to a stand-alone one', [], [owner('ConfigMap')], ['controller', 'trusted', 'collector', 'user']],
    ['leave them as they are', [claimed], [claimed], ['controller', 'trusted', 'collector', 'user']],
  ]
  for (const [what, before, after, allowed] of rows) {
    for (const actor of ['controller', 'trusted', 'collector', 'user'] as const) {
      const oldObject = sandbox({}, { ownerReferences: before })
      const given = subject('Sandbox', sandbox({}, { ownerReferences: after }), { oldObject, actor })
      t.equal(messagesOf('sandbox/forged-pool', given).length === 0, allowed.includes(actor), `${actor}: ${what}`)
    }
  }
})

t.test('a pool label that changes is forged, one that goes is a reserved key', async (t) => {
  const labelled = (value?: string) =>
    sandbox({}, value === undefined ? {} : { labels: { 'agents.x-k8s.io/warm-pool-sandbox': value } })
  const rulesFor = (before: string, after?: string) =>
    evaluate(subject('Sandbox', labelled(after), { oldObject: labelled(before) }), context(), {}).map(
      ({ rule }) => rule,
    )
  t.same(rulesFor('a', 'b'), ['sandbox/forged-pool'])
  t.same(rulesFor('a'), ['sandbox/reserved-keys'])
})

t.test('the collector may delete a Sandbox that a pool controls, or whose claim cannot be read', async (t) => {
  const deletion = (kind: string, facts: Facts) =>
    messagesOf(
      'sandbox/collected-while-claimed',
      subject('Sandbox', sandbox({}, { ownerReferences: [owner(kind)] }), { operation: 'DELETE', actor: 'collector' }),
      context(facts),
    ).length
  t.equal(deletion('SandboxWarmPool', {}), 0)
  t.equal(deletion('SandboxClaim', { owningClaim: { kind: 'unknown', because: 'no answer' } }), 0)
  t.equal(deletion('SandboxClaim', {}), 0)
})

t.test('rules on changes say nothing of an update whose old object is unknown', async (t) => {
  const given = subject('Sandbox', sandbox({}, { labels: {} }), { operation: 'UPDATE' })
  t.same(evaluate(given, context(), {}), [])
})

t.test('a claimed Sandbox is known by its claim-uid label as well', async (t) => {
  const labels = { 'agents.x-k8s.io/claim-uid': 'u' }
  const given = subject('Sandbox', sandbox({ service: true }, { labels }), { oldObject: sandbox({}, { labels }) })
  t.equal(messagesOf('sandbox/claimed-spec', given).length, 1)
  for (const actor of ['controller', 'trusted'] as const) {
    t.same(messagesOf('sandbox/claimed-spec', { ...given, actor }), [])
  }
})

t.test('the order of keys is no change', async (t) => {
  const volume = (spec: object) => sandbox({ volumeClaimTemplates: [{ metadata: { name: 'd' }, spec }] })
  const given = subject('Sandbox', volume({ a: 1, b: 2 }), { oldObject: volume({ b: 2, a: 1 }) })
  t.same(messagesOf('sandbox/volumes-immutable', given), [])
})

const nameHash = { 'agents.x-k8s.io/sandbox-name-hash': 'x' }
const debug = (container: object): Pod => ({
  metadata: { name: 'box' },
  spec: { containers: [], ephemeralContainers: [{ name: 'debug', ...container }] },
})
const attach = (object: Pod) => subject('Pod', object, { operation: 'UPDATE', subresource: 'ephemeralcontainers' })

t.test('on an older server the Pod says whether it is a sandbox, and which volumes hold its token', async (t) => {
  const mount = { volumeMounts: [{ name: 'token', mountPath: '/t' }] }
  const known = (labels: Record<string, string>, volume: object): RuleContext => {
    const containers = [
      { name: 'm', volumeMounts: [{ name: 'other', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }] },
    ]
    const value: Pod = {
      metadata: { name: 'box', labels },
      spec: { containers, volumes: [{ name: 'token', ...volume }] },
    }
    return context({ pod: { kind: 'found', value } })
  }
  const projected = { projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }
  t.equal(messagesOf('pod/ephemeral-container', attach(debug(mount)), known(nameHash, projected)).length, 1)
  t.equal(messagesOf('pod/ephemeral-container', attach(debug(mount)), known({}, projected)).length, 0)
  t.equal(messagesOf('pod/ephemeral-container', attach(debug(mount)), known(nameHash, { emptyDir: {} })).length, 0)
  const other = debug({ volumeMounts: [{ name: 'other', mountPath: '/x' }] })
  t.equal(
    messagesOf('pod/ephemeral-container', attach(other), known(nameHash, projected)).length,
    1,
    "the Pod's own mount tells",
  )
})

t.test('a container that asks for nothing is let in, and a Pod without a spec judged as empty', async (t) => {
  const labelled = { ...debug({}), metadata: { name: 'box', labels: nameHash } }
  t.same(evaluate(attach(labelled), context(), {}), [])
  t.same(evaluate(attach({ metadata: { name: 'box', labels: nameHash } }), context(), {}), [])
})

t.test('restricted asks the same of a debugging container, with what the Pod sets for all', async (t) => {
  const config = configWith((c) => (c.admission.podSecurity = 'restricted'))
  const hardened = { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }
  const securityContext = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }
  const value: Pod = { metadata: { name: 'box', labels: nameHash }, spec: { containers: [], securityContext } }
  const around = context({ pod: { kind: 'found', value } }, config)
  t.same(messagesOf('pod/ephemeral-container', attach(debug(hardened)), around), [])
  t.equal(messagesOf('pod/ephemeral-container', attach(debug({})), around).length, 2)
})

t.test("the spec of a pool's stock: who may change it, and by what marks it is known", async (t) => {
  const marks: Sandbox['metadata'][] = [
    { labels: { 'agents.x-k8s.io/warm-pool-sandbox': 'a' } },
    { labels: { 'agents.kruise.io/sandbox-pool': 'a' } },
    { ownerReferences: [owner('SandboxSet', { apiVersion: 'v1' })] },
  ]
  for (const metadata of marks) {
    const oldObject = sandbox({}, metadata)
    // Taking the marks off in the same request changes nothing about it.
    for (const object of [sandbox({ shutdownTime: 'x' }, metadata), sandbox({ shutdownTime: 'x' })]) {
      const may = (['controller', 'trusted', 'collector', 'user'] as const).filter(
        (actor) => messagesOf('sandbox/pooled-spec', subject('Sandbox', object, { oldObject, actor })).length === 0,
      )
      t.same(may, ['controller', 'trusted'], JSON.stringify(metadata))
    }
  }
  const claimed = { ownerReferences: [owner('SandboxClaim')] }
  const given = subject('Sandbox', sandbox({ shutdownTime: 'x' }, claimed), { oldObject: sandbox({}, claimed) })
  t.same(messagesOf('sandbox/pooled-spec', given), [])
})

t.test("the spec of a sandbox's Pod stays, whichever label marks it and even while it is going", async (t) => {
  const pod = (image: string, metadata: Pod['metadata'], more: object = {}): Pod => ({
    metadata: { name: 'box', ...metadata },
    spec: { containers: [{ name: 'main', image }], ...more },
  })
  const marks = ['sandbox-name-hash', 'warm-pool-sandbox', 'sandbox-template-ref-hash']
  for (const mark of marks) {
    const labels = { [`agents.x-k8s.io/${mark}`]: 'x' }
    const deletionTimestamp = '2026-01-01T00:00:00Z'
    for (const metadata of [{ labels }, { labels, deletionTimestamp }]) {
      const oldObject = pod('a', metadata)
      const rulesOf = (object: Pod) => messagesOf('pod/sandbox-spec', subject('Pod', object, { oldObject })).length
      t.equal(rulesOf(pod('b', metadata)), 1, mark)
      t.equal(rulesOf(pod('b', {})), 1, `${mark} taken off at the same time`)
      t.equal(rulesOf(pod('a', { ...metadata, annotations: { note: 'seen' } })), 0, mark)
      t.equal(rulesOf(pod('b', metadata, { activeDeadlineSeconds: 1 })), 2, 'each field is named')
    }
  }
})

t.test('a toleration that the API server adds is no change, beside one that is there or not', async (t) => {
  const added = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }
  const other = { key: 'example.com/reserved', operator: 'Exists' }
  const pod = (...tolerations: object[]): Pod => ({
    metadata: { name: 'box', labels: nameHash },
    spec: { containers: [], ...(tolerations.length > 0 && { tolerations }) },
  })
  const changes = (before: Pod, after: Pod) =>
    messagesOf('pod/sandbox-spec', subject('Pod', after, { oldObject: before })).length
  t.equal(changes(pod(), pod(added)), 0)
  t.equal(changes(pod(other), pod(other, added)), 0)
  t.equal(changes(pod(other), pod(other, { ...added, effect: 'NoSchedule' })), 1)
  t.equal(changes(pod(), pod({ operator: 'Exists' })), 1, 'tolerates everything')
})
