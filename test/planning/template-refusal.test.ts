import t from 'tap'
import { defaultConfig } from '../../src/config/schema.ts'
import { templateRefusal } from '../../src/planning/template-refusal.ts'
import { aSet, aTemplate, aWarmPool, noon } from '../support/pool-fixtures.ts'

const context = { config: defaultConfig, now: noon, namespace: {} }
const privileged = { spec: { containers: [{ name: 'main', image: 'x', securityContext: { privileged: true } }] } }

t.test('a harmless template is not refused, nor is one that is missing', async (t) => {
  t.equal(templateRefusal(aWarmPool(), aTemplate(), context), undefined)
  t.equal(templateRefusal(aWarmPool(), undefined, context), undefined)
  t.equal(templateRefusal(aSet(), undefined, context), undefined)
})

t.test(
  'the rules of admission are asked again, and the refusal names the object, the field and the rule',
  async (t) => {
    const refusal = templateRefusal(aWarmPool(), aTemplate({ podTemplate: privileged }), context)
    t.match(refusal, /^SandboxTemplate python: spec\.podTemplate.*privileged.*\(template\/pod-security\)/)
    t.match(
      templateRefusal(aSet({ template: privileged }), undefined, context),
      /^SandboxSet demo: .*\(template\/pod-security\)/,
    )
  },
)

t.test('the mode of the namespace holds here too', async (t) => {
  const namespace = { labels: { 'sandgate.dev/admission': 'warn' } }
  const template = aTemplate({ podTemplate: privileged })
  t.equal(templateRefusal(aWarmPool(), template, { ...context, namespace }), undefined)
})
