import t from 'tap'
import { olderNamesake, recipeBeside } from '../../src/planning/namesake.ts'
import { planPool } from '../../src/planning/plan-pool.ts'
import type { Pool } from '../../src/planning/pools.ts'
import { recipeOf } from '../../src/planning/recipe.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { aSet, aWarmPool, members, noon, recipeFor, viewOf } from '../support/pool-fixtures.ts'

const born = <P extends Pool>(pool: P, creationTimestamp: string, uid: string): P => ({
  ...pool,
  metadata: { ...pool.metadata, creationTimestamp, uid },
})
const old = born(aSet(), '2026-01-01T00:00:00Z', 'b')
const young = born(aWarmPool(), '2026-01-01T00:00:01Z', 'a')

t.test('of pools whose names hash alike, the oldest keeps the hash', async (t) => {
  t.equal(olderNamesake(young, [young, old]), old)
  t.equal(olderNamesake(old, [young, old]), undefined)
  t.equal(olderNamesake(old, [old]), undefined)
})

t.test('of two made in the same second, the UID decides, so that every controller picks the same one', async (t) => {
  const twin = born(aWarmPool(), '2026-01-01T00:00:00Z', 'c')
  t.equal(olderNamesake(twin, [old, twin]), old)
  t.equal(olderNamesake(old, [old, twin]), undefined)
})

t.test('the younger keeps its stock, makes nothing and says whose name it has', async (t) => {
  const recipe = recipeBeside(old, young, recipeFor(young))
  const plan = planPool(viewOf(young, { recipe, members: members(recipeFor(young), 1, 'a') }), noon)
  t.equal(plan.create, 0)
  t.same(plan.remove, [])
  const said = new Map(plan.status.conditions?.map((condition) => [condition.type, condition]))
  t.match(said.get('Progressing'), { status: 'False', reason: 'NameCollision', message: /SandboxSet demo/ })
  t.match(said.get('TemplateResolved'), { status: 'True' }, 'nothing is wrong with its template')
})

t.test('without a namesake the recipe is as it was, and what is wrong with the template comes first', async (t) => {
  const recipe = recipeFor(young)
  t.equal(recipeBeside(undefined, young, recipe), recipe)
  const missing = recipeOf(young, undefined, { config: defaultConfig })
  t.equal(recipeBeside(old, young, missing), missing)
})
