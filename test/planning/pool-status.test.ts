import t from 'tap'
import { afterCreate, afterRefusal, cleanHistory } from '../../src/planning/pool-history.ts'
import { planPool } from '../../src/planning/plan-pool.ts'
import { isUrgent, poolStatus, statusPatch, type PoolStatus } from '../../src/planning/pool-status.ts'
import type { PoolView } from '../../src/planning/pool-view.ts'
import { aSet, aWarmPool, member, members, minute, noon, recipeFor, second, viewOf } from '../support/pool-fixtures.ts'

const recipe = recipeFor(aWarmPool())

function statusWith(ready: number, view: Partial<PoolView> = {}): PoolStatus {
  return planPool(viewOf(aWarmPool(), { members: members(recipe, ready, 'a'), ...view }), noon).status
}

t.test('a status that says the same needs no write', async (t) => {
  const published = statusWith(3)
  const pool = { ...aWarmPool(), status: published }
  const again = planPool(viewOf(pool, { members: members(recipe, 3, 'a') }), noon + minute).status
  t.equal(statusPatch(published, again), undefined)
  t.equal(statusPatch(undefined, again)?.status, again)
  t.equal(statusPatch(statusWith(2), again)?.status, again)
})

t.test('conditions of other types are kept', async (t) => {
  const foreign = {
    type: 'Foreign',
    status: 'True',
    reason: 'X',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  } as const
  const pool = { ...aWarmPool(), status: { conditions: [foreign] } }
  t.same(planPool(viewOf(pool), noon).status.conditions?.[0], foreign)
})

t.test('less stock, another generation, revision or condition is urgent; more stock alone is not', async (t) => {
  const growing = statusWith(1)
  t.notOk(isUrgent(growing, statusWith(2)))
  t.ok(isUrgent(statusWith(2), growing))
  t.ok(isUrgent(undefined, growing))
  t.ok(isUrgent(statusWith(2), statusWith(3)), 'the pool is complete')
  t.ok(isUrgent({ ...growing, observedGeneration: 0 }, growing))
  const setStatus = planPool(viewOf(aSet()), noon).status
  t.ok(isUrgent({ ...setStatus, updateRevision: 'old' }, setStatus))
})

t.test('a refusal met in the middle of a pass can be told afterwards', async (t) => {
  const view = viewOf(aWarmPool())
  const refusal = { reason: 'QuotaExceeded', message: 'small', times: 1, retryAt: noon }
  const status = poolStatus({ view, stock: [], history: { ...cleanHistory, refusal }, now: noon })
  t.match(
    status.conditions?.find(({ type }) => type === 'Progressing'),
    { status: 'False', reason: 'QuotaExceeded' },
  )
})

t.test('each refusal in a row waits longer, up to five minutes, until a create goes well', async (t) => {
  const complaint = { reason: 'QuotaExceeded', message: 'small' }
  let history = afterRefusal(cleanHistory, complaint, noon)
  t.equal(history.refusal?.retryAt, noon + second)
  history = afterRefusal(history, complaint, noon)
  t.equal(history.refusal?.retryAt, noon + 2 * second)
  for (let i = 0; i < 20; i++) history = afterRefusal(history, complaint, noon)
  t.equal(history.refusal?.retryAt, noon + 5 * minute)
  t.same(afterCreate(history), cleanHistory)
})

t.test('without its template a set keeps the revision it has published', async (t) => {
  const set = { ...aSet({ templateRef: { name: 'python' } }), status: { updateRevision: 'known' } }
  const obstacle = { kind: 'obstacle', templateRefHash: '', reason: 'TemplateNotFound', message: '' } as const
  t.match(planPool(viewOf(set, { recipe: obstacle }), noon).status, { updateRevision: 'known' })
})

t.test('too much stock is said to be on its way out', async (t) => {
  const view = viewOf(aWarmPool({ replicas: 1 }), { members: members(recipe, 4, 'a'), maxBatch: 1 })
  const progressing = planPool(view, noon).status.conditions?.find(({ type }) => type === 'Progressing')
  t.match(progressing, { status: 'True', reason: 'ScalingDown' })
})

t.test('a rolling update under way is named', async (t) => {
  const stale = recipeFor(aSet({ template: { spec: { containers: [{ name: 'main', image: 'old' }] } } }))
  const view = viewOf(aSet({ updateStrategy: { maxUnavailable: 1 } }), { members: members(stale, 3, 'a') })
  const progressing = planPool(view, noon).status.conditions?.find(({ type }) => type === 'Progressing')
  t.match(progressing, { status: 'True', reason: 'RollingUpdate' })
})

t.test('trouble of a stale sandbox does not stand for the current revision', async (t) => {
  const stale = recipeFor(aWarmPool(), { ...recipeTemplate('old') })
  const pod = {
    metadata: {},
    status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] },
  }
  const view = viewOf(aWarmPool({ replicas: 1 }), {
    members: [member(stale, 'a', { state: 'creating' })],
    podOf: () => pod,
  })
  const progressing = planPool(view, noon).status.conditions?.find(({ type }) => type === 'Progressing')
  t.match(progressing, { status: 'True' })
})

function recipeTemplate(image: string) {
  return {
    metadata: { name: 'python', namespace: 'ns' },
    spec: { podTemplate: { spec: { containers: [{ name: 'main', image }] } } },
  }
}
