import t from 'tap'
import type { Sandbox, SandboxTemplateSpec } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { freshnessJudge } from '../../src/planning/freshness.ts'
import { buildMember, recipeOf, type RecipeOrObstacle } from '../../src/planning/recipe.ts'
import { aSet, aTemplate, aWarmPool, podSpec, recipeFor } from '../support/pool-fixtures.ts'

const withImage = (image: string) => aTemplate({ podTemplate: { spec: { containers: [{ name: 'main', image }] } } })
const pool = aWarmPool()
const recipe = recipeFor(pool)

function relabelled(sandbox: Sandbox, changed: Record<string, string | undefined>): Sandbox {
  const kept = Object.entries({ ...sandbox.metadata.labels, ...changed }).filter(([, value]) => value !== undefined)
  return { ...sandbox, metadata: { ...sandbox.metadata, labels: Object.fromEntries(kept) as Record<string, string> } }
}

function isFresh(sandbox: Sandbox, against: RecipeOrObstacle = recipe, isOrphan = false): boolean {
  return freshnessJudge(against)({ sandbox, isOrphan })
}

const fresh = buildMember(recipe, 'a', 'proof')
const stale = buildMember(recipeFor(pool, withImage('other')), 'a', 'proof')

t.test('1. a sandbox of another template is stale, even with the same blueprint', async (t) => {
  const other = recipeFor(aWarmPool({ sandboxTemplateRef: { name: 'other' } }))
  t.notOk(isFresh(fresh, other))
})

t.test('2. an orphan is judged by its blueprint; its labels are not trusted', async (t) => {
  const lying = relabelled(stale, { [labels.blueprintHash]: recipe.hash })
  t.ok(isFresh(lying), 'the label alone would do for a member')
  t.notOk(isFresh(lying, recipe, true))
  t.ok(isFresh(relabelled(fresh, { [labels.blueprintHash]: 'old' }), recipe, true))
})

t.test('3. the current hash in the label is enough', async (t) => {
  t.ok(isFresh(fresh))
  t.notOk(isFresh(stale))
})

t.test('4. when the current hash cannot be computed, everything is fresh', async (t) => {
  const missing = recipeOf(pool, undefined, { config: defaultConfig })
  t.ok(isFresh(stale, missing))
  t.ok(isFresh(stale, missing, true))
})

t.test('5. an old hash is judged once a pass', async (t) => {
  const judge = freshnessJudge(recipe)
  const first = relabelled(fresh, { [labels.blueprintHash]: 'old' })
  t.ok(judge({ sandbox: first, isOrphan: false }))
  // Contrived: the same hash on another blueprint shows that the first verdict was kept.
  t.ok(judge({ sandbox: relabelled(stale, { [labels.blueprintHash]: 'old' }), isOrphan: false }))
})

t.test('6. an unknown hash says nothing: the blueprints are compared by meaning', async (t) => {
  t.ok(isFresh(relabelled(fresh, { [labels.blueprintHash]: 'of an older version' })))
  t.ok(isFresh(relabelled(fresh, { [labels.blueprintHash]: undefined })))
  t.notOk(isFresh(relabelled(stale, { [labels.blueprintHash]: undefined })))
})

t.test('secure defaults are applied to the template before it is compared', async (t) => {
  t.match(fresh.spec.podTemplate.spec, { automountServiceAccountToken: false })
  t.ok(isFresh(relabelled(fresh, { [labels.blueprintHash]: undefined })))
})

t.test('nil equals empty and quantities compare by value', async (t) => {
  const limited = (memory: string, more: object) =>
    aTemplate({ podTemplate: { spec: { containers: [{ name: 'main', resources: { limits: { memory } } }], ...more } } })
  const member = buildMember(recipeFor(pool, limited('1Gi', {})), 'a', 'proof')
  t.ok(isFresh(member, recipeFor(pool, limited('1024Mi', { volumes: [], tolerations: [] }))))
  t.notOk(isFresh(member, recipeFor(pool, limited('2Gi', {}))))
})

t.test('labels, annotations and policies of a template never make a sandbox stale', async (t) => {
  const changes: Partial<SandboxTemplateSpec>[] = [
    { podTemplate: { metadata: { labels: { a: 'b' }, annotations: { c: 'd' } }, spec: podSpec } },
    { envVarsInjectionPolicy: 'Overrides' },
    { volumeClaimTemplatesPolicy: 'Allowed' },
    { networkPolicyManagement: 'Unmanaged' },
    { networkPolicy: { egress: [] } },
  ]
  for (const change of changes) t.ok(isFresh(fresh, recipeFor(pool, aTemplate(change))), Object.keys(change).join())
})

t.test('a member of a set is fresh exactly when its revision is the current one', async (t) => {
  const set = aSet()
  const member = buildMember(recipeFor(set), 'a', 'proof')
  t.ok(isFresh(member, recipeFor(set)))
  t.notOk(isFresh(member, recipeFor(aSet({ persistentContents: ['ip'] }))), 'the blueprint alone would not tell')
  t.ok(
    isFresh(relabelled(member, { [labels.setTemplateHash]: undefined }), recipeFor(set)),
    'without a label, its blueprint',
  )
})
