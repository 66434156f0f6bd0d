import t from 'tap'
import { sandboxSetKind, type SandboxSetSpec } from '../../src/api/kinds.ts'
import { setRevision } from '../../src/planning/revision.ts'
import { aSet, aTemplate, podSpec } from '../support/pool-fixtures.ts'

const container = { name: 'main', image: 'python:3.12' }
const ref = { templateRef: { name: 'python' } }

/** Fields that make no other sandboxes. Every other field has to make another revision; templateRef has its own test. */
const unrelated: ReadonlySet<string> = new Set(['replicas', 'scaleStrategy', 'updateStrategy'])
const otherValues: SandboxSetSpec = {
  replicas: 9,
  template: { spec: { containers: [{ name: 'main', image: 'other' }] } },
  templateRef: { name: 'other' },
  volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
  persistentContents: ['ip'],
  scaleStrategy: { maxUnavailable: 1 },
  updateStrategy: { maxUnavailable: 1 },
}

t.test('every field of the schema is either part of the revision or listed as unrelated', async (t) => {
  const properties = (sandboxSetKind.spec as { properties?: Record<string, unknown> }).properties ?? {}
  for (const field of Object.keys(properties) as (keyof SandboxSetSpec)[]) {
    t.ok(field in otherValues, `this test knows another value for ${field}`)
    if (field === 'templateRef') continue
    const other = aSet({ [field]: otherValues[field] })
    if (unrelated.has(field)) t.equal(setRevision(other), setRevision(aSet()), field)
    else t.not(setRevision(other), setRevision(aSet()), field)
  }
})

t.test('it is short, lower-case and safe in a label', async (t) => {
  t.match(setRevision(aSet()), /^[0-9a-f]{10}$/)
})

t.test('other ways to write the same are the same revision', async (t) => {
  const withCpu = (cpu: string) =>
    aSet({ template: { spec: { containers: [{ ...container, resources: { limits: { cpu } } }] } } })
  t.equal(setRevision(withCpu('1')), setRevision(withCpu('1000m')))
  t.equal(setRevision(aSet({ volumeClaimTemplates: [] })), setRevision(aSet()))
  t.equal(
    setRevision(aSet({ persistentContents: ['ip', 'memory'] })),
    setRevision(aSet({ persistentContents: ['memory', 'ip'] })),
  )
})

t.test('any field under an inline template makes a new revision, its annotations too', async (t) => {
  t.not(
    setRevision(aSet({ template: { metadata: { annotations: { foo: 'bar' } }, spec: podSpec } })),
    setRevision(aSet()),
  )
})

t.test('with templateRef it is the blueprint of the referenced template that counts', async (t) => {
  const set = aSet(ref)
  const revision = setRevision(set, aTemplate())
  t.not(
    setRevision(set, aTemplate({ podTemplate: { spec: { containers: [{ name: 'main', image: 'other' }] } } })),
    revision,
  )
  t.not(setRevision(set, aTemplate({ service: true })), revision)
  const relabelled = aTemplate({ podTemplate: { metadata: { labels: { a: 'b' } }, spec: podSpec } })
  t.equal(setRevision(set, relabelled), revision)
  t.equal(
    setRevision(set, aTemplate({ envVarsInjectionPolicy: 'Allowed', networkPolicyManagement: 'Unmanaged' })),
    revision,
  )
})

t.test('it is unknown while the referenced template is missing', async (t) => {
  t.equal(setRevision(aSet(ref)), undefined)
})
