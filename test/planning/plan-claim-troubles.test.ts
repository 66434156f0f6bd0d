import t from 'tap'
import type { SandboxClaim } from '../../src/api/kinds.ts'
import type { Condition } from '../../src/api/schema.ts'
import type { ClaimPlan, ClaimView, Confirmation } from '../../src/planning/claim-view.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { planClaim } from '../../src/planning/plan-claim.ts'
import type { Finding } from '../../src/policy/rule.ts'
import { aClaim, aSandbox, at, aView, noon, pool, template } from './claim-fixtures.ts'

const later = (seconds: number) => noon + seconds * 1000
const missing = { kind: 'missing' } as const
const confirmed = (...what: Confirmation[]) => new Set(what)
const withEnv = aClaim({ spec: { env: [{ name: 'A', value: '1' }] } })

function readyIn(plan: ClaimPlan): Condition | undefined {
  return plan.kind === 'publish' ? findCondition(plan.status.conditions, 'Ready') : undefined
}

function condition(type: string, status: 'True' | 'False', reason: string): Condition {
  return { type, status, reason, message: '', lastTransitionTime: at(1) }
}

function finding(rule: string, claimReason?: Finding['claimReason']): Finding {
  return { rule, field: 'spec', message: `spec: no (${rule})`, mode: 'enforce', ...(claimReason && { claimReason }) }
}

t.test('2: a sandbox known from an answer only is asked for when the cache stays silent', async (t) => {
  const claim = aClaim()
  const unseen = aSandbox({ claim })
  const view = aView({ claim, owned: [unseen], unseen })
  t.match(planClaim(view, later(1)), { kind: 'publish', wakeInMs: 30_000 }, 'until then it is believed, not for ever')
  t.same(planClaim({ ...view, isDoubtful: true }, later(1)), {
    kind: 'confirm',
    what: 'own-sandbox',
    sandbox: unseen,
  })
})

t.test('2: clients give up on SandboxExpired, so it is forwarded after a live read only', async (t) => {
  const claim = aClaim({ status: { sandbox: { name: 'pool-abc' } } })
  const expired = aSandbox({ claim, status: { conditions: [condition('Ready', 'False', 'SandboxExpired')] } })
  const view = aView({ claim, owned: [expired], named: { kind: 'found', value: expired } })
  t.match(planClaim(view, later(1)), { kind: 'confirm', what: 'own-sandbox' })
  const plan = planClaim({ ...view, confirmed: confirmed('own-sandbox') }, later(1))
  t.equal(readyIn(plan)?.reason, 'SandboxExpired')
  const told = aClaim({
    status: { sandbox: { name: 'pool-abc' }, conditions: [condition('Ready', 'False', 'SandboxExpired')] },
  })
  t.equal(planClaim({ ...view, claim: told }, later(2)).kind, 'publish', 'what was said is not read again')
})

t.test('2: while the winner is going nothing is let go, and a staying one is preferred to it', async (t) => {
  const going = { deletionTimestamp: at(1) }
  const named = aClaim({ status: { sandbox: { name: 'a' } } })
  const owned = (claim: SandboxClaim) => [
    aSandbox({ name: 'a', claim, metadata: going }),
    aSandbox({ name: 'b', claim }),
  ]
  const [winner] = owned(named)
  const kept = aView({ claim: named, owned: owned(named), named: { kind: 'found', value: winner! } })
  t.equal(planClaim(kept, later(1)).kind, 'publish')
  const plan = planClaim(aView({ owned: owned(aClaim()) }), later(1))
  t.match(plan, { kind: 'publish', status: { sandbox: { name: 'b' } } })
  const allGoing = aView({ owned: owned(aClaim()).slice(0, 1) })
  t.match(readyIn(planClaim(allGoing, later(1))), { status: 'False', reason: 'SandboxNotReady' })
})

t.test('2: equal ages are decided by UID', async (t) => {
  const claim = aClaim()
  const owned = ['b', 'a', 'c'].map((name) => aSandbox({ name, claim }))
  t.match(planClaim(aView({ claim, owned }), later(1)), { status: { sandbox: { name: 'a' } } })
})

t.test('2: metadata that a rule forbids stays off the Pod, other violations do not matter to it', async (t) => {
  const claim = aClaim({ spec: { additionalPodMetadata: { labels: { app: 'x' } } } })
  const view = aView({ claim, owned: [aSandbox({ claim })] })
  const forbidden = [finding('claim/label-domain', 'InvalidMetadata')]
  t.match(planClaim({ ...view, refusals: forbidden }, later(1)), { kind: 'publish', violations: forbidden })
  t.equal(planClaim({ ...view, refusals: [finding('claim/name')] }, later(1)).kind, 'align')
})

t.test('2: a claim that is over says nothing untrue about its sandbox once that is certainly gone', async (t) => {
  const finished = condition('Finished', 'True', 'PodSucceeded')
  const claim = (ready: Condition | undefined, podIPs?: string[]) =>
    aClaim({
      status: {
        conditions: [...(ready ? [ready] : []), finished],
        sandbox: { name: 'gone', ...(podIPs && { podIPs }) },
      },
    })
  const ended = condition('Ready', 'False', 'PodSucceeded')
  t.same(planClaim(aView({ claim: claim(ended) }), later(9)), { kind: 'done' })
  const view = aView({ claim: claim(ended, ['10.0.0.1']) })
  t.same(planClaim(view, later(9)), { kind: 'confirm', what: 'named-sandbox' })
  const plan = planClaim({ ...view, named: missing, confirmed: confirmed('named-sandbox') }, later(9))
  t.match(plan, { kind: 'publish', status: { sandbox: { name: 'gone' }, conditions: [ended, finished] } })
  t.notOk(plan.kind === 'publish' && plan.status.sandbox?.podIPs)
  for (const ready of [condition('Ready', 'True', 'DependenciesReady'), undefined]) {
    const lost = aView({ claim: claim(ready, ['10.0.0.1']), named: missing })
    t.equal(readyIn(planClaim(lost, later(9)))?.reason, 'SandboxMissing')
  }
})

t.test('3: a live read does not make a young claim’s pool certainly missing', async (t) => {
  const view = aView({ pool: missing, confirmed: confirmed('pool-and-template') })
  t.match(planClaim(view, later(1)), { kind: 'wait', forMs: 4_000 })
})

t.test('3: what a live read leaves unknown is read again later', async (t) => {
  const unknown = { kind: 'unknown', because: 'x' } as const
  const view = aView({ pool: unknown, template: unknown })
  t.match(planClaim(view, later(9)), { kind: 'confirm' })
  t.match(planClaim({ ...view, confirmed: confirmed('pool-and-template') }, later(9)), { kind: 'wait', forMs: 1_000 })
})

t.test('4: a quota is named only when nothing else is wrong, without a live read, and looked at again', async (t) => {
  const quota = finding('claim/quota', 'QuotaExceeded')
  const plan = planClaim(aView({ refusals: [quota] }), later(1))
  t.match(readyIn(plan), { reason: 'QuotaExceeded', message: quota.message })
  t.match(plan, { wakeInMs: 10_000 })
  const both = aView({ refusals: [quota, finding('claim/name')], confirmed: confirmed('pool-and-template') })
  t.match(readyIn(planClaim(both, later(1))), { reason: 'InvalidMetadata', message: 'spec: no (claim/name)' })
})

t.test('7: after five lost races the claim says so and waits a moment', async (t) => {
  const stock = { kind: 'candidate', sandbox: aSandbox() } as const
  t.equal(planClaim(aView({ stock, lostRaces: 4 }), later(1)).kind, 'adopt')
  const plan = planClaim(aView({ stock, lostRaces: 5 }), later(1))
  t.equal(readyIn(plan)?.reason, 'AdoptionConflict')
  t.match(plan, { wakeInMs: 1_000 })
  t.match(readyIn(planClaim(aView({ marked: aSandbox(), lostRaces: 5 }), later(1))), { reason: 'AdoptionConflict' })
})

t.test('9: what stands in the way of a cold start is said, with a time to look again', async (t) => {
  const rows: [Partial<ClaimView>, string, RegExp][] = [
    [{ exceededQuota: 'exceeded quota: two' }, 'QuotaExceeded', /exceeded quota: two/],
    [{ templateRefusal: 'no (template/pod-security)' }, 'ReconcilerError', /template\/pod-security/],
    [{ ofSameHash: aSandbox({ name: 'twin' }) }, 'SandboxNameTaken', /hash is that of Sandbox twin/],
  ]
  for (const [trouble, reason, message] of rows) {
    const plan = planClaim(aView(trouble), later(1))
    t.match(readyIn(plan), { status: 'False', reason, message })
    t.ok(plan.kind === 'publish' && plan.wakeInMs)
    t.match(plan, { awaitsStock: true }, 'a warm sandbox would help')
    const own = planClaim(aView({ ...trouble, claim: withEnv }), later(1))
    t.notMatch(own, { awaitsStock: true }, 'but not a claim that needs its own')
  }
})

t.test('9: a name whose holder is not known is asked for once in a pass', async (t) => {
  const view = aView({ ofName: { kind: 'unknown', because: 'x' } })
  t.same(planClaim(view, later(1)), { kind: 'confirm', what: 'sandbox-of-name' })
  t.match(planClaim({ ...view, confirmed: confirmed('sandbox-of-name') }, later(1)), { kind: 'wait' })
})

t.test('1: the time of expiry counts from the Finished that is about to be published', async (t) => {
  const finished = { ...condition('Finished', 'True', 'PodSucceeded'), lastTransitionTime: at(5) }
  const claim = aClaim({ spec: { lifecycle: { ttlSecondsAfterFinished: 10 } } })
  const status = { conditions: [condition('Ready', 'False', 'PodSucceeded'), finished] }
  const view = aView({ claim, owned: [aSandbox({ claim, status })] })
  t.match(planClaim(view, later(6)), { kind: 'publish', wakeInMs: 9_000 })
  t.match(planClaim(view, later(60)), { kind: 'publish', wakeInMs: 0 }, 'overdue: at once')
})

t.test('1: every waiting state ends at the expiry at the latest', async (t) => {
  const claim = aClaim({ spec: { lifecycle: { shutdownTime: at(2) } } })
  t.match(planClaim(aView({ claim, pool: missing }), later(1)), { kind: 'wait', forMs: 1_000 })
  t.match(planClaim(aView({ claim, exceededQuota: 'q' }), later(1)), { kind: 'publish', wakeInMs: 1_000 })
  const over = aClaim({ ...claim, status: { conditions: [condition('Finished', 'True', 'PodFailed')] } })
  t.match(planClaim(aView({ claim: over }), later(1)), { kind: 'wait', forMs: 1_000 })
  t.same(planClaim(aView({ claim }), later(1)), { kind: 'create', pool, template }, 'what is not a wait is unaffected')
})
