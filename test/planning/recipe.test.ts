import fc from 'fast-check'
import t from 'tap'
import { nameHash } from '../../src/api/hash.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { poolOwner } from '../../src/planning/pools.ts'
import { buildMember, memberName, recipeOf } from '../../src/planning/recipe.ts'
import { aSet, aTemplate, aWarmPool, podSpec, recipeFor } from '../support/pool-fixtures.ts'

t.test('a member of a warm pool carries the marks of kinds.md, and no others', async (t) => {
  const recipe = recipeFor(aWarmPool())
  const member = buildMember(recipe, 'pool-x', 'proof')
  t.same(member.metadata, {
    name: 'pool-x',
    namespace: 'ns',
    labels: {
      [labels.warmPool]: nameHash('pool'),
      [labels.templateRefHash]: nameHash('python'),
      [labels.blueprintHash]: recipe.hash,
      [labels.launchType]: 'warm',
    },
    annotations: {
      [annotations.podName]: 'pool-x',
      [annotations.templateRef]: 'python',
      [annotations.origin]: 'proof',
    },
    ownerReferences: [poolOwner(aWarmPool())],
  })
  t.same(member.spec.podTemplate.metadata, {
    labels: { [labels.warmPool]: nameHash('pool'), [labels.templateRefHash]: nameHash('python') },
    annotations: { [annotations.safeToEvict]: 'true' },
  })
})

t.test('a value of safe-to-evict that the template sets stays', async (t) => {
  const template = aTemplate({
    podTemplate: { metadata: { annotations: { [annotations.safeToEvict]: 'false' } }, spec: podSpec },
  })
  const member = buildMember(recipeFor(aWarmPool(), template), 'x', 'proof')
  t.equal(member.spec.podTemplate.metadata?.annotations?.[annotations.safeToEvict], 'false')
})

t.test('a member of a set also carries the marks of its own API', async (t) => {
  const recipe = recipeFor(aSet())
  t.match(buildMember(recipe, 'x', 'proof').metadata.labels, {
    [labels.warmPool]: nameHash('SandboxSet/demo'),
    [labels.templateRefHash]: nameHash('SandboxSet/demo'),
    [labels.setPool]: 'demo',
    [labels.setTemplate]: 'demo',
    [labels.setClaimed]: 'false',
    [labels.setTemplateHash]: recipe.revision,
  })
  const byRef = buildMember(recipeFor(aSet({ templateRef: { name: 'python' } })), 'x', 'proof')
  t.match(byRef.metadata.labels, {
    [labels.templateRefHash]: nameHash('python'),
    [labels.setPool]: 'demo',
    [labels.setTemplate]: 'python',
  })
})

t.test('volumes of a set stand in for those of the template it refers to', async (t) => {
  const volumes = (name: string) => [{ metadata: { name }, spec: {} }]
  const set = aSet({ templateRef: { name: 'python' }, volumeClaimTemplates: volumes('own') })
  const { spec } = recipeFor(set, aTemplate({ volumeClaimTemplates: volumes('theirs') })).prototype
  t.same(spec.volumeClaimTemplates, volumes('own'))
})

t.test('names and label values stay within 63 characters whatever the pool is called', async (t) => {
  const poolName = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?$/)
  fc.assert(
    fc.property(poolName, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (name, random) => {
      const made = memberName(name, () => random)
      const set = { ...aSet(), metadata: { ...aSet().metadata, name } }
      const values = Object.values(recipeFor(set).prototype.metadata.labels ?? {})
      return (
        /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(made) &&
        !/[.-][.]|[.][.-]/.test(made.slice(made.length - 12)) &&
        [made, ...values].every((text) => text.length <= 63)
      )
    }),
  )
  t.pass()
})

t.test('long pool names that begin alike are told apart in labels', async (t) => {
  const label = (end: string) => {
    const set = { ...aSet(), metadata: { ...aSet().metadata, name: `${'x'.repeat(70)}${end}` } }
    return recipeFor(set).prototype.metadata.labels?.[labels.setPool]
  }
  t.not(label('a'), label('b'))
})

t.test('a missing template and a refused one are obstacles that say what to do', async (t) => {
  const missing = recipeOf(aWarmPool(), undefined, { config: defaultConfig })
  t.match(missing, { kind: 'obstacle', reason: 'TemplateNotFound', message: /python does not exist in namespace ns/ })
  const refused = recipeOf(aWarmPool(), aTemplate(), { config: defaultConfig, refusal: 'because' })
  t.match(refused, { kind: 'obstacle', reason: 'TemplateRejected', message: 'because' })
})
