import t from 'tap'
import { nameHash } from '../../src/api/hash.ts'
import { SandboxBlueprint, type SandboxBlueprint as Blueprint } from '../../src/api/schema.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { blueprintHash, blueprintOf, buildSandboxFromTemplate, implicitTemplate } from '../../src/planning/blueprint.ts'
import { signedBlueprint } from '../../src/planning/origin.ts'
import { poolOwner } from '../../src/planning/pools.ts'
import { aSet, aTemplate, aWarmPool, podSpec } from '../support/pool-fixtures.ts'

const base: Blueprint = { podTemplate: { spec: podSpec } }

/** For every field of the blueprint a value that makes another sandbox. A field without one here fails the test below. */
const otherValues: { [field in keyof Required<Blueprint>]: Blueprint[field] } = {
  podTemplate: { spec: { containers: [{ name: 'main', image: 'other' }] } },
  volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
  service: true,
}

t.test('every field of the schema is part of the blueprint, its hash and its proof', async (t) => {
  for (const field of Object.keys(SandboxBlueprint.properties) as (keyof Blueprint)[]) {
    t.ok(field in otherValues, `this test knows another value for ${field}`)
    const other = { spec: { ...base, [field]: otherValues[field] } }
    t.not(blueprintHash(blueprintOf(other)), blueprintHash(blueprintOf({ spec: base })), field)
    t.not(signedBlueprint(other), signedBlueprint({ spec: base }), field)
  }
})

t.test('labels and annotations of the Pod are no part of it', async (t) => {
  const labelled = {
    ...base,
    podTemplate: { ...base.podTemplate, metadata: { labels: { a: 'b' }, annotations: { c: 'd' } } },
  }
  t.equal(blueprintHash(blueprintOf({ spec: labelled })), blueprintHash(blueprintOf({ spec: base })))
})

t.test('nor is anything else of a Sandbox or a template', async (t) => {
  const blueprint = blueprintOf(aTemplate({ service: true, envVarsInjectionPolicy: 'Allowed', networkPolicy: {} }))
  t.same(Object.keys(blueprint).toSorted(), ['podTemplate', 'service'])
})

t.test('volume claim templates compare by position', async (t) => {
  const volumes = (...names: string[]) => names.map((name) => ({ metadata: { name }, spec: {} }))
  const hash = (...names: string[]) =>
    blueprintHash(blueprintOf({ spec: { ...base, volumeClaimTemplates: volumes(...names) } }))
  t.not(hash('a', 'b'), hash('b', 'a'))
})

t.test('the hash fits a label', async (t) => {
  t.match(blueprintHash(blueprintOf({ spec: base })), /^[0-9a-f]{16}$/)
})

t.test(
  'a set with an inline template stands for a template that allows no injection and has the secure network',
  async (t) => {
    const set = aSet({ volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }] })
    t.match(implicitTemplate(set), {
      kind: 'SandboxSet',
      metadata: { name: 'demo', namespace: 'ns', uid: 'set-uid' },
      spec: {
        podTemplate: set.spec.template,
        volumeClaimTemplates: set.spec.volumeClaimTemplates,
        networkPolicyManagement: 'Managed',
        envVarsInjectionPolicy: 'Disallowed',
        volumeClaimTemplatesPolicy: 'Disallowed',
      },
    })
    t.notOk('networkPolicy' in implicitTemplate(set).spec)
  },
)

t.test('a sandbox from a template', async (t) => {
  const request = {
    name: 'box',
    namespace: 'ns',
    owner: poolOwner(aWarmPool()),
    launchType: 'cold',
    config: defaultConfig,
    labels: { l: '1' },
    annotations: { a: '1' },
    podLabels: { team: 'mine' },
  } as const
  const podTemplate = {
    metadata: { labels: { team: 'theirs', kept: 'yes' }, annotations: { note: 'x' } },
    spec: podSpec,
  }
  const template = aTemplate({ podTemplate, service: true })
  const sandbox = buildSandboxFromTemplate(template, request)

  t.test('carries the whole blueprint with secure defaults applied', async (t) => {
    t.match(sandbox.spec, {
      service: true,
      podTemplate: { spec: { ...podSpec, automountServiceAccountToken: false, dnsPolicy: 'None' } },
    })
    t.same(template.spec.podTemplate.spec, podSpec, 'and leaves the template alone')
  })

  t.test('carries the marks of kinds.md, beside those that were asked for', async (t) => {
    t.same(sandbox.metadata, {
      name: 'box',
      namespace: 'ns',
      labels: { l: '1', [labels.templateRefHash]: nameHash('python'), [labels.launchType]: 'cold' },
      annotations: { a: '1', [annotations.podName]: 'box', [annotations.templateRef]: 'python' },
      ownerReferences: [request.owner],
    })
    t.same(sandbox.spec.podTemplate.metadata, {
      labels: { team: 'mine', kept: 'yes', [labels.templateRefHash]: nameHash('python') },
      annotations: { note: 'x' },
    })
  })

  t.test('of a set is marked with the set, so that a template of its name is another one', async (t) => {
    const ofSet = buildSandboxFromTemplate(implicitTemplate(aSet()), request)
    t.equal(ofSet.metadata.labels?.[labels.templateRefHash], nameHash('SandboxSet/demo'))
  })
})
