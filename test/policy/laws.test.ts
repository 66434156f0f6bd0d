import * as fc from 'fast-check'
import t from 'tap'
import { evaluate } from '../../src/policy/evaluate.ts'
import type { Subject } from '../../src/policy/rule.ts'
import { rules } from '../../src/policy/rules.ts'
import { loadFixtures } from './fixture.ts'

const fixtures = loadFixtures()
const stored = fixtures.filter((fixture) => fixture.subject.operation !== 'DELETE')

t.test('an update that changes nothing is never refused, whatever the stored object breaks', async (t) => {
  for (const { path, subject, context } of stored) {
    const unchanged = { ...subject, operation: 'UPDATE', oldObject: structuredClone(subject.object) } as Subject
    const refused = evaluate(unchanged, context, {}).filter(({ mode }) => mode === 'enforce')
    t.same(refused, [], path)
  }
})

t.test('labelling a stored object is never refused, whatever the object breaks', async (t) => {
  for (const { path, subject, context } of stored) {
    const { metadata } = subject.object
    const object = { ...subject.object, metadata: { ...metadata, labels: { ...metadata.labels, team: 'red' } } }
    const labelled = { ...subject, operation: 'UPDATE', object, oldObject: subject.object } as Subject
    const refused = evaluate(labelled, context, {}).filter(({ mode }) => mode === 'enforce')
    t.same(refused, [], path)
  }
})

t.test('without facts, no rule that needs them refuses', async (t) => {
  const needing =
    /^(claim\/(env-(policy|override|from|container)|volume-(policy|override)|metadata-conflict|pool-missing|template-missing|name-taken|quota)|template\/(network-name-taken|pod-invalid|in-use)|pool\/template-missing|sandbox\/collected-while-claimed|names\/hash-collision)$/
  for (const { path, subject, context } of fixtures) {
    const found = evaluate(subject, { ...context, facts: {} }, {}).filter(({ rule }) => needing.test(rule))
    t.same(found, [], path)
  }
})

t.test('no rule changes its subject or its facts', async (t) => {
  for (const { path, subject, context } of fixtures) {
    const before = structuredClone({ subject, context })
    evaluate(subject, context, {})
    t.strictSame({ subject, context }, before, path)
  }
})

t.test('no PodSpec, however malformed, makes a rule throw', async (t) => {
  // The schema of our kinds leaves a PodSpec open to any JSON; only the shape of the root is given.
  const names = ['containers', 'initContainers', 'volumes', 'securityContext', 'hostNetwork', 'env', 'envFrom', 'ports']
  const more = [
    'name',
    'image',
    'capabilities',
    'add',
    'drop',
    'sysctls',
    'projected',
    'sources',
    'livenessProbe',
    'volumeMounts',
  ]
  const { anyJson } = fc.letrec((tie) => ({
    anyJson: fc.oneof(
      { maxDepth: 6, depthSize: 'small' },
      fc.constantFrom<unknown>(null, true, false, 0, 'x', ''),
      fc.array(tie('anyJson'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names, ...more), tie('anyJson'), { maxKeys: 5 }),
    ),
  }))
  const podSpec = fc.dictionary(fc.constantFrom(...names), anyJson, { maxKeys: 6 })
  const kinds = fc.constantFrom('SandboxTemplate' as const, 'Sandbox' as const)
  fc.assert(
    fc.property(podSpec, kinds, (spec, kind) => {
      const object = JSON.parse(JSON.stringify({ metadata: { name: 'x' }, spec: { podTemplate: { spec } } })) as never
      const subject: Subject = { kind, operation: 'CREATE', namespace: 'd', object, actor: 'user', username: 'a' }
      const context = fixtures[0]?.context
      if (!context) throw new Error('no fixtures')
      const config = structuredClone(context.config)
      config.admission.podSecurity = 'restricted'
      config.admission.imageRegistries = ['registry.example.com']
      const thrown = evaluate(subject, { ...context, config, facts: {} }, {}, rules).filter(({ message }) =>
        message.includes('could not be judged'),
      )
      t.same(thrown, [], JSON.stringify(spec))
    }),
    { numRuns: 500 },
  )
})
