import t from 'tap'
import type { SandboxClaim } from '../../src/api/kinds.ts'
import type { ClaimPlan, Confirmation } from '../../src/planning/claim-view.ts'
import { planClaim } from '../../src/planning/plan-claim.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { boundStatus } from '../../src/planning/claim-status.ts'
import type { Finding } from '../../src/policy/rule.ts'
import { aClaim, aSandbox, at, aView, noon, pool, template } from './claim-fixtures.ts'

const missing = { kind: 'missing' } as const
const confirmed = (...what: Confirmation[]) => new Set(what)
const later = (seconds: number) => noon + seconds * 1000

function published(t: Tap, plan: ClaimPlan): Extract<ClaimPlan, { kind: 'publish' }> {
  t.equal(plan.kind, 'publish')
  return plan as Extract<ClaimPlan, { kind: 'publish' }>
}
type Tap = Pick<typeof t, 'equal'>

function readyOf(plan: { status: { conditions?: NonNullable<SandboxClaim['status']>['conditions'] } }) {
  return findCondition(plan.status.conditions, 'Ready')
}

function withReady(reason: string, lifecycle: SandboxClaim['spec']['lifecycle'], sandbox?: string): SandboxClaim {
  return aClaim({
    spec: { ...(lifecycle && { lifecycle }) },
    status: {
      conditions: [{ type: 'Ready', status: 'False', reason, message: '', lastTransitionTime: at(1) }],
      ...(sandbox !== undefined && { sandbox: { name: sandbox } }),
    },
  })
}

t.test('0: a claim that is gone is forgotten', async (t) => {
  t.same(planClaim(aView({ claim: undefined }), noon), { kind: 'done' })
})

t.test('0: a claim that is being deleted is left alone, expired or not', async (t) => {
  const claim = aClaim({ metadata: { deletionTimestamp: at(1) }, spec: { lifecycle: { shutdownTime: at(-5) } } })
  t.same(planClaim(aView({ claim }), noon), { kind: 'done' })
})

t.test('1: an expired claim says so before anything is deleted', async (t) => {
  const claim = aClaim({ spec: { lifecycle: { shutdownTime: at(10), shutdownPolicy: 'Delete' } } })
  const plan = published(t, planClaim(aView({ claim, owned: [aSandbox({ claim })] }), later(10)))
  t.equal(readyOf(plan)?.reason, 'ClaimExpired')
  t.equal(plan.andGoOn, true)
})

t.test('1: once marked, each policy deletes what it says', async (t) => {
  const expired = (shutdownPolicy: 'Delete' | 'DeleteForeground' | 'Retain') =>
    withReady('ClaimExpired', { shutdownTime: at(10), shutdownPolicy }, 'pool-abc')
  const plan = (claim: SandboxClaim) => planClaim(aView({ claim, owned: [aSandbox({ claim })] }), later(11))
  t.same(plan(expired('Delete')), { kind: 'delete-claim', propagation: 'Background' })
  t.same(plan(expired('DeleteForeground')), { kind: 'delete-claim', propagation: 'Foreground' })
  t.match(plan(expired('Retain')), { kind: 'delete-sandboxes', because: 'expired' })
})

t.test('1: a retained claim keeps the name until its sandbox is gone, then drops it and rests', async (t) => {
  const claim = withReady('ClaimExpired', { shutdownTime: at(10) }, 'pool-abc')
  const going = aSandbox({ claim, metadata: { deletionTimestamp: at(11) } })
  t.equal(planClaim(aView({ claim, owned: [going] }), later(12)).kind, 'wait')
  t.same(planClaim(aView({ claim }), later(12)), { kind: 'confirm', what: 'named-sandbox' })
  const plan = published(
    t,
    planClaim(aView({ claim, named: missing, confirmed: confirmed('named-sandbox') }), later(12)),
  )
  t.equal(plan.status.sandbox, undefined)
  t.equal(readyOf(plan)?.reason, 'ClaimExpired')
  t.same(planClaim(aView({ claim: withReady('ClaimExpired', { shutdownTime: at(10) }) }), later(20)), { kind: 'done' })
})

t.test('1: a claim that is extended after its mark lives on', async (t) => {
  const claim = withReady('ClaimExpired', { shutdownTime: at(100), shutdownPolicy: 'Delete' }, 'pool-abc')
  const plan = published(t, planClaim(aView({ claim, owned: [aSandbox({ claim })] }), later(20)))
  t.equal(readyOf(plan)?.status, 'True')
})

t.test('1: of two deadlines the earlier counts, and the claim is looked at exactly then', async (t) => {
  const finished = {
    type: 'Finished',
    status: 'True',
    reason: 'PodSucceeded',
    message: '',
    lastTransitionTime: at(5),
  } as const
  for (const [shutdownTime, ttlSecondsAfterFinished, wakeInMs] of [
    [at(100), 10, 9_000],
    [at(8), 60, 2_000],
  ] as const) {
    const lifecycle = { shutdownTime, ttlSecondsAfterFinished }
    const claim = aClaim({ spec: { lifecycle }, status: { conditions: [finished] } })
    const sandbox = aSandbox({ claim })
    sandbox.status?.conditions?.push(finished)
    t.equal(published(t, planClaim(aView({ claim, owned: [sandbox] }), later(6))).wakeInMs, wakeInMs)
  }
})

t.test('2: a bound claim forwards its sandbox’s Ready, name and addresses', async (t) => {
  const claim = aClaim()
  const plan = published(t, planClaim(aView({ claim, owned: [aSandbox({ claim })] }), later(1)))
  t.match(readyOf(plan), {
    status: 'True',
    reason: 'DependenciesReady',
    observedGeneration: 1,
    lastTransitionTime: at(1),
  })
  t.same(plan.status.sandbox, { name: 'pool-abc', podIPs: ['10.0.0.1'] })
  t.equal(plan.wakeInMs, undefined, 'a ready claim waits for events')
})

t.test('2: a bound claim whose sandbox has not reported, or is not ready, is looked at again', async (t) => {
  const claim = aClaim()
  const silent = published(t, planClaim(aView({ claim, owned: [aSandbox({ claim, status: {} })] }), later(1)))
  t.equal(readyOf(silent)?.reason, 'SandboxNotReady')
  const unready = published(t, planClaim(aView({ claim, owned: [aSandbox({ claim, ready: false })] }), later(1)))
  t.equal(readyOf(unready)?.reason, 'DependenciesNotReady')
  for (const plan of [silent, unready]) t.equal(plan.wakeInMs, 30_000)
})

t.test('2: lastTransitionTime never predates the claim and moves only with the status', async (t) => {
  const claim = aClaim({ metadata: { creationTimestamp: at(3) } })
  const first = boundStatus(claim, aSandbox({ claim }), later(1))
  t.equal(findCondition(first.conditions, 'Ready')?.lastTransitionTime, at(3))
  const again = boundStatus({ ...claim, status: first }, aSandbox({ claim }), later(50))
  t.same(again, first)
})

t.test('2: Finished is mirrored with the time it has on the sandbox', async (t) => {
  const claim = aClaim()
  const sandbox = aSandbox({ claim })
  const finished = {
    type: 'Finished',
    status: 'True',
    reason: 'PodFailed',
    message: 'exit 1',
    lastTransitionTime: at(7),
  } as const
  sandbox.status?.conditions?.push({ ...finished, observedGeneration: 9 })
  const plan = published(t, planClaim(aView({ claim, owned: [sandbox] }), later(20)))
  t.same(findCondition(plan.status.conditions, 'Finished'), { ...finished, observedGeneration: 1 })
})

t.test('2: metadata that fell out of line is mended before the status', async (t) => {
  const claim = aClaim({ spec: { additionalPodMetadata: { labels: { 'sandbox.users.io/a': '1' } } } })
  const plan = planClaim(aView({ claim, owned: [aSandbox({ claim })] }), later(1))
  t.match(plan, {
    kind: 'align',
    patch: { spec: { podTemplate: { metadata: { labels: { 'sandbox.users.io/a': '1' } } } } },
  })
})

t.test('2: a missing template is no obstacle for a bound claim', async (t) => {
  const claim = aClaim()
  t.equal(planClaim(aView({ claim, owned: [aSandbox({ claim })], template: missing }), later(1)).kind, 'publish')
})

t.test('2: a policy that became stricter does not unbind', async (t) => {
  const claim = aClaim()
  const refusals: Finding[] = [
    { rule: 'claim/label-domain', field: 'spec', message: 'no', mode: 'enforce', claimReason: 'InvalidMetadata' },
  ]
  const plan = published(t, planClaim(aView({ claim, owned: [aSandbox({ claim })], refusals }), later(1)))
  t.equal(readyOf(plan)?.status, 'True')
})

t.test('2: of several sandboxes the one in the status wins and the others go', async (t) => {
  const claim = aClaim({ status: { sandbox: { name: 'b' } } })
  const [a, b] = [aSandbox({ name: 'a', claim }), aSandbox({ name: 'b', claim })]
  t.same(planClaim(aView({ claim, owned: [a, b], named: { kind: 'found', value: b } }), later(1)), {
    kind: 'delete-sandboxes',
    sandboxes: [a],
    because: 'duplicate',
  })
})

t.test('2: with no name published the oldest wins, and it is published before the others go', async (t) => {
  const claim = aClaim()
  const young = aSandbox({ name: 'a', claim, metadata: { creationTimestamp: at(-5) } })
  const old = aSandbox({ name: 'b', claim, metadata: { creationTimestamp: at(-9) } })
  const plan = published(t, planClaim(aView({ claim, owned: [young, old] }), later(1)))
  t.equal(plan.status.sandbox?.name, 'b')
  t.equal(plan.andGoOn, true)
})

t.test('2: a published name is replaced only after a live read shows that sandbox gone', async (t) => {
  const claim = aClaim({ status: { sandbox: { name: 'old' } } })
  const owned = [aSandbox({ name: 'new', claim })]
  t.same(planClaim(aView({ claim, owned }), later(1)), { kind: 'confirm', what: 'named-sandbox' })
  const view = aView({ claim, owned, named: missing, confirmed: confirmed('named-sandbox') })
  t.equal(published(t, planClaim(view, later(1))).status.sandbox?.name, 'new')
})

t.test('2: a lost sandbox is confirmed live, then said, then replaced', async (t) => {
  const claim = aClaim({ status: { sandbox: { name: 'gone' } } })
  t.same(planClaim(aView({ claim }), later(60)), { kind: 'confirm', what: 'named-sandbox' })
  const view = aView({ claim, named: missing, confirmed: confirmed('named-sandbox') })
  const plan = published(t, planClaim(view, later(60)))
  t.equal(readyOf(plan)?.reason, 'SandboxMissing')
  t.equal(plan.status.sandbox, undefined)
  t.equal(plan.andGoOn, true)
  const kept = published(t, planClaim({ ...view, rebindAfterLoss: false }, later(60)))
  t.equal(kept.status.sandbox?.name, 'gone')
  t.equal(kept.andGoOn, undefined)
})

t.test('2: a claim that was over is never bound again', async (t) => {
  const stock = { kind: 'candidate', sandbox: aSandbox() } as const
  for (const reason of ['SandboxExpired', 'ClaimExpired']) {
    t.same(planClaim(aView({ claim: withReady(reason, undefined, 'gone'), stock }), later(60)), { kind: 'done' })
  }
  const finished = {
    type: 'Finished',
    status: 'True',
    reason: 'PodSucceeded',
    message: '',
    lastTransitionTime: at(5),
  } as const
  const claim = aClaim({ status: { conditions: [finished], sandbox: { name: 'gone' } } })
  t.same(planClaim(aView({ claim, stock }), later(60)), { kind: 'done' })
})

t.test(
  '3: a young claim waits for its pool or template; an older one looks live, then says what is missing',
  async (t) => {
    for (const [absent, reason] of [
      [{ pool: missing, template: missing }, 'WarmPoolNotFound'],
      [{ template: missing }, 'TemplateNotFound'],
    ] as const) {
      const stock = { kind: 'candidate', sandbox: aSandbox() } as const
      t.match(planClaim(aView({ ...absent, stock }), later(2)), { kind: 'wait', forMs: 3_000 })
      t.same(planClaim(aView({ ...absent, stock }), later(6)), { kind: 'confirm', what: 'pool-and-template' })
      const view = aView({ ...absent, stock, confirmed: confirmed('pool-and-template') })
      const plan = published(t, planClaim(view, later(6)))
      t.equal(readyOf(plan)?.reason, reason)
      t.ok(plan.wakeInMs, 'it is looked at again without an event')
    }
  },
)

t.test('3: without a template warm stock is not handed out, since policy cannot be judged', async (t) => {
  const view = aView({ template: missing, stock: { kind: 'candidate', sandbox: aSandbox() } })
  t.not(planClaim(view, later(10)).kind, 'adopt')
})

t.test('4: a refusal is judged on live objects first, then is final', async (t) => {
  const refusals: Finding[] = [
    {
      rule: 'claim/env-policy',
      field: 'spec.env',
      message: 'spec.env: no (claim/env-policy)',
      mode: 'enforce',
      claimReason: 'EnvVarsInjectionRejected',
    },
  ]
  t.same(planClaim(aView({ refusals }), later(1)).kind, 'confirm')
  const plan = published(t, planClaim(aView({ refusals, confirmed: confirmed('pool-and-template') }), later(1)))
  t.match(readyOf(plan), { status: 'False', reason: 'EnvVarsInjectionRejected', message: /claim\/env-policy/ })
  t.equal(plan.wakeInMs, undefined)
})

t.test('5: the sandbox that an older controller assigned is taken before any better one', async (t) => {
  const marked = aSandbox({ name: 'marked' })
  const plan = planClaim(aView({ marked, stock: { kind: 'candidate', sandbox: aSandbox({ name: 'best' }) } }), later(1))
  t.match(plan, { kind: 'adopt', sandbox: { metadata: { name: 'marked' } } })
})

t.test('6: env or volumes of its own force a cold start past a full pool', async (t) => {
  const stock = { kind: 'candidate', sandbox: aSandbox() } as const
  const claims = [
    aClaim({ spec: { env: [{ name: 'A', value: '1' }] } }),
    aClaim({ spec: { volumeClaimTemplates: [{ metadata: { name: 'd' }, spec: {} }] } }),
  ]
  for (const claim of claims) t.same(planClaim(aView({ claim, stock }), later(1)), { kind: 'create', pool, template })
})

t.test('7: the best candidate is adopted', async (t) => {
  const sandbox = aSandbox()
  t.same(planClaim(aView({ stock: { kind: 'candidate', sandbox } }), later(1)), { kind: 'adopt', sandbox, template })
})

t.test('8: a young claim waits while its only candidates have no address; an older one starts cold', async (t) => {
  t.match(planClaim(aView({ stock: { kind: 'warming' } }), later(1)), { kind: 'wait', forMs: 500 })
  t.equal(planClaim(aView({ stock: { kind: 'warming' } }), later(2)).kind, 'create')
})

t.test('9: an empty pool means a cold start at once', async (t) => {
  t.same(planClaim(aView(), noon), { kind: 'create', pool, template })
})

t.test('9: a sandbox of the claim’s name is judged by a live read', async (t) => {
  const ofName = { kind: 'found', value: aSandbox({ name: 'claim' }) } as const
  t.same(planClaim(aView({ ofName }), later(1)), { kind: 'confirm', what: 'sandbox-of-name' })
  const plan = published(t, planClaim(aView({ ofName, confirmed: confirmed('sandbox-of-name') }), later(1)))
  t.equal(readyOf(plan)?.reason, 'SandboxNameTaken')
  t.equal(plan.wakeInMs, 30_000)
})

t.test('9: a predecessor’s sandbox, or one that is going, is waited for', async (t) => {
  const predecessor = aClaim({ metadata: { uid: 'older-uid' } })
  for (const value of [
    aSandbox({ name: 'claim', claim: predecessor }),
    aSandbox({ name: 'claim', metadata: { deletionTimestamp: at(1) } }),
  ]) {
    const view = aView({ ofName: { kind: 'found', value }, confirmed: confirmed('sandbox-of-name') })
    t.equal(planClaim(view, later(1)).kind, 'wait')
  }
})

t.test('9: a squatted name does not affect the warm path', async (t) => {
  const ofName = { kind: 'found', value: aSandbox({ name: 'claim' }) } as const
  t.equal(planClaim(aView({ ofName, stock: { kind: 'candidate', sandbox: aSandbox() } }), later(1)).kind, 'adopt')
})

t.test('every Ready=False that is not terminal carries a time to look again', async (t) => {
  const terminal = new Set(['EnvVarsInjectionRejected', 'ClaimExpired'])
  const views = [
    aView({ pool: missing, confirmed: confirmed('pool-and-template') }),
    aView({ template: missing, confirmed: confirmed('pool-and-template') }),
    aView({ ofName: { kind: 'found', value: aSandbox({ name: 'claim' }) }, confirmed: confirmed('sandbox-of-name') }),
    aView({ owned: [aSandbox({ claim: aClaim(), ready: false })] }),
  ]
  for (const view of views) {
    const plan = published(t, planClaim(view, later(10)))
    t.notOk(terminal.has(readyOf(plan)?.reason ?? ''))
    t.ok(plan.wakeInMs !== undefined && plan.wakeInMs <= 60_000)
  }
})
