import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { configurationJsonSchema, configurationMarkdown } from '../../src/config/documentation.ts'
import { ConfigSchema, defaultConfig } from '../../src/config/schema.ts'

t.test('the schema for editors accepts an empty file, a full one, and no unknown key', async (t) => {
  const validate = new Ajv2020({ strict: true }).compile(configurationJsonSchema())
  t.ok(validate({}))
  t.ok(validate(structuredClone(defaultConfig)))
  t.ok(validate({ pools: {} }), 'no option is required')
  t.notOk(validate({ pool: {} }))
  t.notOk(validate({ pools: { maxReplica: 1 } }))
})

t.test('every option has a description that says its default, and the document has it all', async (t) => {
  const text = configurationMarkdown()
  const visit = (path: string, schema: { properties?: object; description?: string; default?: unknown }) => {
    t.match(schema.description, /\.$/, path)
    if (!schema.properties) {
      t.ok(text.includes(`**\`${path}\`**`), path)
      t.ok(schema.default !== undefined || schema.description?.includes('Default: '), `${path} has a default`)
    }
    for (const [key, member] of Object.entries(schema.properties ?? {}))
      visit(path ? `${path}.${key}` : key, member as object)
  }
  visit('', ConfigSchema)
})

t.test('the defaults are those that the file would get', async (t) => {
  t.equal(defaultConfig.kind, 'SandgateConfiguration')
  t.same(defaultConfig.rules, {})
  t.match(defaultConfig, {
    admission: { podSecurity: 'baseline', controllers: ['system:serviceaccount:sandgate-system:sandgate'] },
    claims: { rebindAfterLoss: true },
    pools: { maxBatch: 300, readinessGraceSeconds: 300 },
    sandboxes: { controller: 'builtin', recreateFailedPods: false, clusterDomain: 'cluster.local' },
    network: { routerNamespace: 'agent-sandbox-system', extraBlockedCIDRs: [] },
  })
  t.notOk('maxLifetime' in defaultConfig.claims)
})
