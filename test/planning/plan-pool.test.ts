import t from 'tap'
import { labels } from '../../src/api/vocabulary.ts'
import type { PoolStatus } from '../../src/planning/pool-status.ts'
import { planPool, type PoolPlan } from '../../src/planning/plan-pool.ts'
import type { Complaint, PoolView } from '../../src/planning/pool-view.ts'
import { recipeOf } from '../../src/planning/recipe.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import {
  aSet,
  aTemplate,
  aWarmPool,
  member,
  members,
  minute,
  noon,
  recipeFor,
  second,
  unschedulablePod,
  viewOf,
  waitingPod,
  pendingPod,
} from '../support/pool-fixtures.ts'

const otherTemplate = aTemplate({ podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3.11' }] } } })
const otherInline = { template: otherTemplate.spec.podTemplate }

function warm(
  replicas: number,
  view: Partial<PoolView> = {},
  updateStrategy: 'Recreate' | 'OnReplenish' = 'OnReplenish',
) {
  return viewOf(aWarmPool({ replicas, updateStrategy: { type: updateStrategy } }), view)
}
const warmRecipe = recipeFor(aWarmPool())
const staleWarmRecipe = recipeFor(aWarmPool(), otherTemplate)
const setRecipe = recipeFor(aSet())
const staleSetRecipe = recipeFor(aSet(otherInline))

function removed(plan: PoolPlan): string[] {
  return plan.remove.map(({ sandbox, because }) => `${sandbox.metadata.name} ${because}`)
}

function conditionOf(plan: { status: PoolStatus }, type: string) {
  const { status, reason, message } = plan.status.conditions?.find((condition) => condition.type === type) ?? {}
  return { status, reason, message }
}

const missingTemplate = recipeOf(aWarmPool(), undefined, { config: defaultConfig })

t.test('members and states', async (t) => {
  t.test('a sandbox that is Ready but has no address does not count as available', async (t) => {
    const ready = member(warmRecipe, 'a')
    const { podIPs: _none, ...status } = ready.sandbox.status ?? {}
    const plan = planPool(warm(1, { members: [{ ...ready, sandbox: { ...ready.sandbox, status } }] }), noon)
    t.match(plan.status, { replicas: 1, readyReplicas: 0 })
  })

  t.test('a paused sandbox is stock, but not available', async (t) => {
    const plan = planPool(
      viewOf(aSet({ replicas: 1 }), { members: [member(setRecipe, 'a', { state: 'paused' })] }),
      noon,
    )
    t.match(plan.status, { replicas: 1, availableReplicas: 0 })
    t.equal(plan.create, 0)
    t.same(plan.remove, [])
  })

  t.test('a dead sandbox is removed and replaced in the same pass', async (t) => {
    const plan = planPool(
      warm(2, { members: [member(warmRecipe, 'a'), member(warmRecipe, 'b', { state: 'failed' })] }),
      noon,
    )
    t.same(removed(plan), ['b dead'])
    t.equal(plan.create, 1)
    t.match(plan.status, { replicas: 1, readyReplicas: 1 })
  })

  t.test('a sandbox that is due to end, which no pool asks for, counts as dead and is replaced', async (t) => {
    const shutdownTime = new Date(noon + 3_600 * second).toISOString()
    const plan = planPool(
      warm(2, { members: [member(warmRecipe, 'a', { shutdownTime }), member(warmRecipe, 'b')] }),
      noon,
    )
    t.same(removed(plan), ['a dead'])
    t.equal(plan.create, 1)
    t.equal(plan.lookAgainAt, undefined)
  })
})

t.test('1. members whose delete was issued are gone: not counted, not deleted again, and replaced', async (t) => {
  const plan = planPool(warm(2, { members: members(warmRecipe, 2, 'a'), issuedDeletes: new Set(['uid-of-a-0']) }), noon)
  t.same(removed(plan), [])
  t.equal(plan.create, 1)
  t.match(plan.status, { replicas: 1 })
})

t.test('3. stuck', async (t) => {
  const stuck = { state: 'creating', ageMs: 5 * minute } as const

  t.test('a sandbox that is not Ready within the grace is removed', async (t) => {
    const plan = planPool(warm(1, { members: [member(warmRecipe, 'a', stuck)] }), noon)
    t.same(removed(plan), ['a stuck'])
  })

  t.test('a moment before, it is kept, and the pool looks again when the grace is over', async (t) => {
    const plan = planPool(
      warm(1, { members: [member(warmRecipe, 'a', { ...stuck, ageMs: 5 * minute - second })] }),
      noon,
    )
    t.same(removed(plan), [])
    t.equal(plan.lookAgainAt, noon + second)
  })

  t.test('the grace counts from the moment Ready was lost', async (t) => {
    const lost = member(warmRecipe, 'a', { state: 'creating', ageMs: 60 * minute, unreadyMs: 4 * minute })
    t.same(removed(planPool(warm(1, { members: [lost] }), noon)), [])
    t.same(removed(planPool(warm(1, { members: [lost] }), noon + minute)), ['a stuck'])
  })

  for (const [what, pod] of [
    ['unschedulable', unschedulablePod],
    ['held back by a scheduling gate', pendingPod({ phase: 'Pending' }, { schedulingGates: [{ name: 'quota' }] })],
  ] as const) {
    t.test(`one whose Pod is ${what} is held, and looked at again each minute`, async (t) => {
      const plan = planPool(warm(1, { members: [member(warmRecipe, 'a', stuck)], podOf: () => pod }), noon)
      t.same(removed(plan), [])
      t.same(
        plan.hold.map(({ metadata }) => metadata.name),
        ['a'],
      )
      t.equal(plan.create, 0)
      t.equal(plan.lookAgainAt, noon + minute)
      t.equal(conditionOf(plan, 'Progressing').status, 'False')
    })
  }
})

t.test('4. too much stock', async (t) => {
  t.test('a warm pool removes what is not Ready first, then the newest', async (t) => {
    const stock = [
      member(warmRecipe, 'old', { ageMs: 3 * minute }),
      member(warmRecipe, 'new', { ageMs: minute }),
      member(warmRecipe, 'middle', { ageMs: 2 * minute }),
      member(warmRecipe, 'creating', { state: 'creating', ageMs: 4 * minute }),
    ]
    t.same(removed(planPool(warm(2, { members: stock }), noon)), ['creating surplus', 'new surplus'])
    t.same(removed(planPool(warm(3, { members: stock }), noon)), ['creating surplus'])
  })

  t.test('a set removes stale ones first, then what is not available, then the newest', async (t) => {
    const stock = [
      member(setRecipe, 'old', { ageMs: 3 * minute }),
      member(setRecipe, 'new', { ageMs: minute }),
      member(setRecipe, 'creating', { state: 'creating', ageMs: 4 * minute }),
      member(staleSetRecipe, 'stale', { ageMs: 4 * minute }),
    ]
    const view = (replicas: number) =>
      viewOf(aSet({ replicas, updateStrategy: { maxUnavailable: 0 } }), { members: stock })
    t.same(removed(planPool(view(3), noon)), ['stale surplus'])
    t.same(removed(planPool(view(2), noon)), ['stale surplus', 'creating surplus'])
    t.same(removed(planPool(view(1), noon)), ['stale surplus', 'creating surplus', 'new surplus'])
  })

  t.test('creates that are not seen yet are the surplus once they are; nothing seen goes in their place', async (t) => {
    const plan = planPool(warm(2, { members: members(warmRecipe, 2, 'a'), issuedCreates: 2 }), noon)
    t.same(removed(plan), [])
    t.equal(plan.create, 0)
  })

  t.test('replicas 0 removes everything', async (t) => {
    t.equal(planPool(warm(0, { members: members(warmRecipe, 3, 'a') }), noon).remove.length, 3)
  })
})

t.test('5. stale stock', async (t) => {
  t.test('OnReplenish keeps it, and replaces what is missing by the new blueprint', async (t) => {
    const plan = planPool(warm(3, { members: members(staleWarmRecipe, 2, 'a') }), noon)
    t.same(removed(plan), [])
    t.equal(plan.create, 1)
  })

  t.test('Recreate removes it at once, and makes the new in the same pass', async (t) => {
    const stock = [...members(staleWarmRecipe, 2, 'a'), member(warmRecipe, 'b')]
    const plan = planPool(warm(3, { members: stock }, 'Recreate'), noon)
    t.same(removed(plan), ['a-0 stale', 'a-1 stale'])
    t.equal(plan.create, 2)
  })

  t.test('a rolling update removes creating ones without budget, then the oldest available within it', async (t) => {
    const stock = [
      member(staleSetRecipe, 'young', { ageMs: minute }),
      ...members(staleSetRecipe, 8, 'fellow', { ageMs: 2 * minute }),
      member(staleSetRecipe, 'oldest', { ageMs: 3 * minute }),
    ]
    const plan = planPool(
      viewOf(aSet({ replicas: 10, updateStrategy: { maxUnavailable: 1 } }), { members: stock }),
      noon,
    )
    t.same(removed(plan), ['oldest stale'])
    t.equal(plan.create, 1)
    t.match(plan.status, { availableReplicas: 9, updatedReplicas: 0 }, 'never below 9')
    const creating = stock.with(0, member(staleSetRecipe, 'creating', { state: 'creating' }))
    const next = planPool(
      viewOf(aSet({ replicas: 10, updateStrategy: { maxUnavailable: 1 } }), { members: creating }),
      noon,
    )
    t.same(removed(next), ['creating stale'], 'one is missing already')
  })

  t.test('the budget of a rolling update is 20% by default, rounded up', async (t) => {
    const plan = planPool(viewOf(aSet({ replicas: 6 }), { members: members(staleSetRecipe, 6, 'a') }), noon)
    t.equal(plan.remove.length, 2)
  })

  t.test('maxUnavailable 0 pauses the update, and the condition says so', async (t) => {
    const set = aSet({ replicas: 2, updateStrategy: { maxUnavailable: 0 } })
    const plan = planPool(viewOf(set, { members: members(staleSetRecipe, 2, 'a') }), noon)
    t.same(plan.remove, [])
    t.match(conditionOf(plan, 'Progressing'), { status: 'False', reason: 'RollingUpdatePaused' })
  })

  t.test('the update is complete when all desired sandboxes are updated and available', async (t) => {
    const almost = [...members(setRecipe, 2, 'a'), member(setRecipe, 'b', { state: 'creating' })]
    t.match(conditionOf(planPool(viewOf(aSet(), { members: almost }), noon), 'Progressing'), { reason: 'Replenishing' })
    const plan = planPool(viewOf(aSet(), { members: members(setRecipe, 3, 'a') }), noon)
    t.match(conditionOf(plan, 'Progressing'), { status: 'True', reason: 'Complete' })
    t.match(plan.status, { updatedAvailableReplicas: 3, updateRevision: setRecipe.revision })
  })

  t.test(
    'stock whose key is lost is stale: it is replaced within the budget, a fifth at a time where there is none',
    async (t) => {
      const unprovable = members(warmRecipe, 10, 'a', { isProvable: false })
      const plan = planPool(warm(10, { members: unprovable }), noon)
      t.equal(plan.remove.length, 2)
      t.match(plan.status, { readyReplicas: 0 }, 'no claim can be given it')
      t.equal(planPool(warm(10, { members: unprovable }, 'Recreate'), noon).remove.length, 10)
      const set = aSet({ replicas: 10, updateStrategy: { maxUnavailable: 3 } })
      const ofSet = members(setRecipe, 10, 'a', { isProvable: false })
      t.equal(planPool(viewOf(set, { members: ofSet }), noon).remove.length, 3)
    },
  )
})

t.test('6. short of stock', async (t) => {
  t.test('what is missing is created; creates that are not seen yet count as stock', async (t) => {
    t.equal(planPool(warm(3), noon).create, 3)
    t.equal(planPool(warm(3, { members: members(warmRecipe, 1, 'a'), issuedCreates: 1 }), noon).create, 1)
  })

  t.test('a set creates min(missing, maxUnavailable − creating)', async (t) => {
    const set = aSet({ replicas: 20, scaleStrategy: { maxUnavailable: 5 } })
    t.equal(planPool(viewOf(set), noon).create, 5)
    const partly = [...members(setRecipe, 4, 'ready'), ...members(setRecipe, 2, 'creating', { state: 'creating' })]
    t.equal(planPool(viewOf(set, { members: partly, issuedCreates: 1 }), noon).create, 2)
  })

  t.test('a percentage counts from spec.replicas and is rounded up; 0 creates none and says so', async (t) => {
    const set = (maxUnavailable: string | number) => aSet({ replicas: 7, scaleStrategy: { maxUnavailable } })
    t.equal(planPool(viewOf(set('20%')), noon).create, 2)
    const plan = planPool(viewOf(set(0)), noon)
    t.equal(plan.create, 0)
    t.match(conditionOf(plan, 'Progressing'), { status: 'False', reason: 'ScaleUpPaused' })
  })

  t.test('a pass creates and removes no more than a batch together, and comes back at once for the rest', async (t) => {
    const plan = planPool(warm(500, { maxBatch: 300 }), noon)
    t.equal(plan.create, 300)
    t.equal(plan.lookAgainAt, noon)
    const recreate = planPool(warm(4, { members: members(staleWarmRecipe, 4, 'a'), maxBatch: 3 }, 'Recreate'), noon)
    t.equal(recreate.remove.length, 3)
    t.equal(recreate.create, 0)
    t.equal(recreate.lookAgainAt, noon)
  })

  t.test('the refill rate paces it, and the pool comes back when one more is allowed', async (t) => {
    const plan = planPool(warm(9, { allowance: { creates: 4, nextAt: noon + 250 } }), noon)
    t.equal(plan.create, 4)
    t.equal(plan.lookAgainAt, noon + 250)
  })

  t.test('a pool whose template is missing keeps its stock, creates nothing and says so', async (t) => {
    const plan = planPool(
      warm(3, { recipe: missingTemplate, members: members(staleWarmRecipe, 2, 'a') }, 'Recreate'),
      noon,
    )
    t.same(plan.remove, [])
    t.equal(plan.create, 0)
    t.match(conditionOf(plan, 'TemplateResolved'), { status: 'False', reason: 'TemplateNotFound', message: /python/ })
    t.match(conditionOf(plan, 'Progressing'), { status: 'False', reason: 'TemplateNotFound' })
    t.match(plan.status, { replicas: 2, readyReplicas: 2 })
  })

  t.test('a template that the rules refuse makes nothing either, and the condition says why', async (t) => {
    const recipe = recipeOf(aWarmPool(), aTemplate(), { config: defaultConfig, refusal: 'privileged' })
    const plan = planPool(warm(3, { recipe }), noon)
    t.equal(plan.create, 0)
    t.match(conditionOf(plan, 'TemplateResolved'), {
      status: 'False',
      reason: 'TemplateRejected',
      message: 'privileged',
    })
  })
})

t.test('a template that never becomes Ready does not churn', async (t) => {
  const stuckLooks = { state: 'creating', ageMs: 5 * minute } as const
  const stuck = member(warmRecipe, 'a', stuckLooks)
  const noImage = { podOf: () => waitingPod('ErrImagePull') }

  t.test("the condition names the Pod's own reason as soon as it is known", async (t) => {
    const young = member(warmRecipe, 'a', { state: 'creating', ageMs: second })
    const plan = planPool(warm(1, { members: [young], ...noImage }), noon)
    t.match(conditionOf(plan, 'Progressing'), { status: 'False', reason: 'ImagePullBackOff', message: /nope:0/ })
  })

  t.test('a stuck one is replaced by one alone, which is given longer, and so on', async (t) => {
    const first = planPool(warm(9, { members: members(warmRecipe, 9, 'a', stuckLooks), ...noImage }), noon)
    t.equal(first.remove.length, 9)
    t.equal(first.create, 1)
    t.match(conditionOf(first, 'Progressing'), { status: 'False', reason: 'ImagePullBackOff' })
    const probing = planPool(warm(9, { history: first.history, issuedCreates: 1 }), noon)
    t.equal(probing.create, 0)
    const probe = { history: first.history, members: [member(warmRecipe, 'b', stuckLooks)], ...noImage }
    const patient = planPool(warm(9, probe), noon)
    t.same(patient.remove, [])
    t.equal(patient.lookAgainAt, noon + second)
    const next = planPool(warm(9, probe), noon + second)
    t.same(removed(next), ['b stuck'])
    t.equal(next.create, 1)
    t.equal(next.history.failures, 2)
  })

  t.test('after one that ended early, creating waits, longer each time', async (t) => {
    const ended = (name: string) => member(warmRecipe, name, { state: 'failed', ageMs: second })
    const first = planPool(warm(9, { members: [ended('a')] }), noon)
    t.equal(first.create, 0)
    t.equal(first.lookAgainAt, noon + second)
    t.match(conditionOf(first, 'Progressing'), { status: 'False', reason: 'PodFailed' })
    const repeated = planPool(warm(9, { history: first.history, members: [ended('a')] }), noon)
    t.equal(repeated.history, first.history, 'one whose delete failed counts once')
    t.equal(planPool(warm(9, { history: first.history }), noon + second).create, 1)
    const again = planPool(warm(9, { history: first.history, members: [ended('b')] }), noon + second)
    t.equal(again.lookAgainAt, noon + 3 * second)
  })

  t.test('of one that nobody ever said anything about, it is said how it went', async (t) => {
    const silent = (status: object, ageMs: number) => {
      const { sandbox, ...rest } = member(warmRecipe, 'a', { state: 'creating', ageMs })
      return { ...rest, sandbox: { ...sandbox, status } }
    }
    const stuckOne = planPool(warm(1, { members: [silent({}, 5 * minute)] }), noon)
    t.match(stuckOne.history.failure, { reason: 'NotReadyInTime' })
    const endedOne = planPool(warm(1, { members: [silent({ phase: 'Failed' }, second)] }), noon)
    t.match(endedOne.history.failure, { reason: 'SandboxEnded' })
  })

  t.test('one that is available ends the wait for all', async (t) => {
    const { history } = planPool(warm(9, { members: [stuck] }), noon)
    t.equal(planPool(warm(9, { history, members: [member(warmRecipe, 'b')] }), noon).create, 8)
  })

  t.test('another revision starts without the failures of the one before', async (t) => {
    const { history } = planPool(warm(3, { members: [stuck] }), noon)
    t.equal(planPool(warm(3, { history, recipe: staleWarmRecipe }), noon).create, 3)
  })

  t.test('a sandbox that ends after a useful life is replaced at once', async (t) => {
    const ended = member(warmRecipe, 'a', { state: 'failed', ageMs: 60 * minute })
    t.equal(planPool(warm(1, { members: [ended] }), noon).create, 1)
    const young = member(warmRecipe, 'a', { state: 'failed', ageMs: second })
    t.equal(planPool(warm(1, { members: [young] }), noon).create, 0)
  })

  t.test('a create that the API server refused waits, and the condition names the quota', async (t) => {
    const refusal: Complaint & { times: number; retryAt: number } = {
      reason: 'QuotaExceeded',
      message: 'exceeded quota: small',
      times: 1,
      retryAt: noon + second,
    }
    const history = { revision: warmRecipe.revision, failures: 0, retryAt: 0, refusal }
    const plan = planPool(warm(2, { history }), noon)
    t.equal(plan.create, 0)
    t.equal(plan.lookAgainAt, noon + second)
    t.match(conditionOf(plan, 'Progressing'), { status: 'False', reason: 'QuotaExceeded', message: /small/ })
    t.equal(planPool(warm(2, { history }), noon + second).create, 2)
  })
})

t.test('7. orphans that stay are adopted, judged by their blueprint and not by their labels', async (t) => {
  const fresh = member(warmRecipe, 'fresh', { isOrphan: true })
  const stale = member(staleWarmRecipe, 'stale', { isOrphan: true })
  const { metadata } = stale.sandbox
  const labelled = { ...metadata, labels: { ...metadata.labels, [labels.blueprintHash]: warmRecipe.hash } }
  const liar = { ...stale, sandbox: { ...stale.sandbox, metadata: labelled } }
  const plan = planPool(warm(2, { members: [fresh, liar] }), noon)
  t.match(plan.adopt, [
    { sandbox: { metadata: { name: 'fresh' } }, isFresh: true },
    { sandbox: { metadata: { name: 'stale' } }, isFresh: false },
  ])
  t.equal(planPool(warm(0, { members: [fresh] }), noon).adopt.length, 0)
})

t.test('8. status', async (t) => {
  t.test('counts what is observed, before the creates of this pass and without its removals', async (t) => {
    const stock = [
      member(setRecipe, 'a'),
      member(setRecipe, 'b', { state: 'creating' }),
      member(staleSetRecipe, 'c'),
      member(setRecipe, 'd', { state: 'failed' }),
    ]
    const set = aSet({ replicas: 5, updateStrategy: { maxUnavailable: 0 } })
    const plan = planPool(viewOf(set, { members: stock, issuedCreates: 1 }), noon)
    t.match(plan.status, {
      replicas: 3,
      availableReplicas: 2,
      updatedReplicas: 2,
      updatedAvailableReplicas: 1,
      observedGeneration: 1,
      updateRevision: setRecipe.revision,
      selector: `${labels.warmPool}=${setRecipe.prototype.metadata.labels?.[labels.warmPool]}`,
    })
  })

  t.test('Available is true exactly when the available stock is what was asked for', async (t) => {
    t.match(conditionOf(planPool(warm(2, { members: members(warmRecipe, 1, 'a') }), noon), 'Available'), {
      status: 'False',
    })
    t.match(conditionOf(planPool(warm(1, { members: members(warmRecipe, 1, 'a') }), noon), 'Available'), {
      status: 'True',
    })
  })

  t.test('a set scaled 2 → 10 while its revision changes counts the updated right', async (t) => {
    const set = aSet({ replicas: 10, ...otherInline })
    const recipe = recipeFor(set)
    const stock = members(setRecipe, 2, 'old')
    const first = planPool(viewOf(set, { recipe, members: stock }), noon)
    t.match(first.status, { replicas: 2, updatedReplicas: 0 })
    t.equal(first.create, 8)
    const later = [...stock, ...members(recipe, 8, 'new', { state: 'creating' })]
    t.match(planPool(viewOf(set, { recipe, members: later }), noon).status, {
      updatedReplicas: 8,
      availableReplicas: 2,
    })
  })
})
