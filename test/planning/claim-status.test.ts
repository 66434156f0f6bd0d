import t from 'tap'
import { boundStatus, claimStatusPatch, lostStatus, notReadyStatus } from '../../src/planning/claim-status.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { aClaim, aSandbox, at, noon } from './claim-fixtures.ts'

const later = (seconds: number) => noon + seconds * 1000
const trouble = { reason: 'ReconcilerError', message: 'x' }

t.test('what is bound forwards status, reason and message of its sandbox’s Ready', async (t) => {
  const claim = aClaim({ metadata: { generation: 4 } })
  const status = boundStatus(claim, aSandbox({ claim }), later(9))
  t.match(findCondition(status.conditions, 'Ready'), {
    status: 'True',
    reason: 'DependenciesReady',
    observedGeneration: 4,
    lastTransitionTime: at(9),
  })
})

t.test('a claim without a generation, as old servers made them, gets none observed', async (t) => {
  const { generation: _none, ...metadata } = aClaim().metadata
  const claim = { ...aClaim(), metadata }
  const finished = {
    type: 'Finished',
    status: 'True',
    reason: 'PodFailed',
    message: '',
    lastTransitionTime: at(1),
  } as const
  const sandbox = aSandbox({ claim })
  sandbox.status?.conditions?.push(finished)
  for (const condition of boundStatus(claim, sandbox, later(1)).conditions ?? []) {
    t.notOk(Object.hasOwn(condition, 'observedGeneration'))
  }
})

t.test('addresses come and go with the Pod, and the name stays', async (t) => {
  const claim = aClaim({ status: { sandbox: { name: 'pool-abc', podIPs: ['10.0.0.1'] } } })
  const sandbox = aSandbox({ claim, status: { conditions: [] } })
  t.same(boundStatus(claim, sandbox, later(1)).sandbox, { name: 'pool-abc' })
  t.match(claimStatusPatch(claim, boundStatus(claim, sandbox, later(1))), {
    status: { sandbox: { name: 'pool-abc', podIPs: null } },
  })
  t.same(notReadyStatus(claim, trouble, later(1), { keepSandbox: true }).sandbox, { name: 'pool-abc' })
  t.equal(notReadyStatus(claim, trouble, later(1), { keepSandbox: false }).sandbox, undefined)
  t.equal(notReadyStatus(aClaim(), trouble, later(1), { keepSandbox: true }).sandbox, undefined, 'none to keep')
})

t.test('Finished follows the sandbox while there is one, and survives it', async (t) => {
  const finished = {
    type: 'Finished',
    status: 'True',
    reason: 'PodFailed',
    message: '',
    lastTransitionTime: at(1),
  } as const
  const claim = aClaim({ status: { conditions: [finished] } })
  t.equal(findCondition(boundStatus(claim, aSandbox({ claim }), later(1)).conditions, 'Finished'), undefined)
  const { conditions } = notReadyStatus(claim, trouble, later(1), { keepSandbox: false })
  t.same(findCondition(conditions, 'Finished'), finished)
})

t.test('a time that cannot be read as the claim’s creation does not hold up the clock', async (t) => {
  const { creationTimestamp: _none, ...metadata } = aClaim().metadata
  const { conditions } = notReadyStatus({ ...aClaim(), metadata }, trouble, later(3), { keepSandbox: false })
  t.equal(findCondition(conditions, 'Ready')?.lastTransitionTime, at(3))
})

t.test('the patch carries the version it was made for, and only what differs makes one', async (t) => {
  const claim = aClaim()
  const wanted = notReadyStatus(claim, trouble, later(1), { keepSandbox: false })
  const patch = claimStatusPatch(claim, wanted)
  t.match(patch, { metadata: { resourceVersion: '10' }, status: { conditions: wanted.conditions } })
  t.notOk(JSON.stringify(patch).includes('sandbox":'), 'there was no sandbox to take away')
  const foreign = { ...wanted, observedByOthers: 1 }
  t.equal(claimStatusPatch({ ...claim, status: foreign }, wanted), undefined, 'fields of others are theirs')
  const named = aClaim({ status: { ...wanted, sandbox: { name: 'a' } } })
  t.match(claimStatusPatch(named, wanted), { status: { sandbox: null } })
  t.match(claimStatusPatch(named, { sandbox: {} }), { status: { sandbox: { name: null } } })
})

t.test('a claim that keeps the name of a lost sandbox is neither ready nor has addresses', async (t) => {
  t.equal(lostStatus(aClaim(), later(1)), undefined, 'it names none')
  const quiet = aClaim({ status: { sandbox: { name: 'a' } } })
  t.equal(lostStatus(quiet, later(1)), undefined, 'it says nothing untrue')
})
