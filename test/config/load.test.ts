import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ConfigError, loadConfig, parseConfig } from '../../src/config/load.ts'
import { defaultConfig } from '../../src/config/schema.ts'

t.test('an empty file means the defaults', async (t) => {
  for (const text of ['', '# nothing\n', '---\n', 'null', '{}', 'pools:\nrules:\n']) {
    t.strictSame(parseConfig(text, 'f'), defaultConfig, JSON.stringify(text))
  }
})

t.test('two files never share their defaults', async (t) => {
  parseConfig('', 'f').admission.controllers.push('mallory')
  t.notOk(parseConfig('', 'f').admission.controllers.includes('mallory'))
  t.notOk(defaultConfig.admission.controllers.includes('mallory'))
})

t.test('what is given replaces its default, and the rest stays', async (t) => {
  const config = parseConfig('admission: {podSecurity: restricted}\nrules: {template/*: warn}', 'f')
  t.equal(config.admission.podSecurity, 'restricted')
  t.same(config.admission.labelDomains, ['sandbox.users.io'])
  t.same(config.rules, { 'template/*': 'warn' })
})

t.test('a mode may be given by rule id, by family, for all, or by any beginning of an id', async (t) => {
  for (const key of ['claim/env-policy', 'claim/*', '*', 'claim/env-*']) {
    t.same(parseConfig(JSON.stringify({ rules: { [key]: 'audit' } }), 'f').rules, { [key]: 'audit' })
  }
})

const rows: [name: string, text: string, message: string][] = [
  ['an unknown option', 'admision: {}', 'f.yaml: "admision" is not a known option. Did you mean "admission"?'],
  [
    'an unknown option in a section',
    'pools: {maxReplica: 3}',
    'f.yaml: pools: "maxReplica" is not a known option. Did you mean "maxReplicas"?',
  ],
  [
    'an option that is like no other',
    'zzzzzzzzz: 1',
    'f.yaml: "zzzzzzzzz" is not a known option. Choose one of apiVersion, kind, rules, admission, claims, pools, sandboxes, network.',
  ],
  [
    'an unknown option without a value',
    'admision:',
    'f.yaml: "admision" is not a known option. Did you mean "admission"?',
  ],
  [
    'an unknown value',
    'admission: {podSecurity: restrict}',
    'f.yaml: admission.podSecurity: "restrict" is not a known value. Did you mean "restricted"?',
  ],
  [
    'an unknown rule',
    'rules: {claim/env-polcy: off}',
    'f.yaml: rules: "claim/env-polcy" is not a known rule. Did you mean "claim/env-policy"?',
  ],
  ['an unknown family', 'rules: {clam/*: off}', 'f.yaml: rules: "clam/*" is not a known rule. Did you mean "claim/*"?'],
  [
    'a rule that is like no other',
    'rules: {completely-different: off}',
    'f.yaml: rules: "completely-different" is not a known rule. Choose one of docs/rules.md.',
  ],
  ['an unknown mode', 'rules: {claim/*: of}', 'f.yaml: rules.claim/*: "of" is not a known value. Did you mean "off"?'],
  [
    'a mode that is no text',
    'rules: {claim/*: 1}',
    'f.yaml: rules.claim/*: 1 is not a known value. Choose one of enforce, warn, audit, off.',
  ],
  ['a wrong type', 'admission: {trustedUsers: velero}', 'f.yaml: admission.trustedUsers: "velero" must be a list.'],
  [
    'a wrong type in a list',
    'admission: {trustedUsers: [a, 1]}',
    'f.yaml: admission.trustedUsers[1]: 1 must be a string.',
  ],
  ['a number for a section', 'pools: 3', 'f.yaml: pools: 3 must be a mapping.'],
  ['a fraction for a count', 'pools: {maxBatch: 1.5}', 'f.yaml: pools.maxBatch: 1.5 must be an integer.'],
  ['a number below its least', 'pools: {maxBatch: 0}', 'f.yaml: pools.maxBatch: 0 must be >= 1.'],
  [
    'no duration',
    'claims: {maxLifetime: 3 days}',
    'f.yaml: claims.maxLifetime: "3 days" is not a duration. Write it as 90s, 30m, 1h30m or 7d.',
  ],
  [
    'an empty duration',
    'claims: {maxLifetime: ""}',
    'f.yaml: claims.maxLifetime: "" is not a duration. Write it as 90s, 30m, 1h30m or 7d.',
  ],
  [
    'a default beyond the limit',
    'claims: {maxLifetime: 1h, defaultLifetime: 1h1s}',
    'f.yaml: claims.defaultLifetime: "1h1s" is longer than claims.maxLifetime, "1h".',
  ],
  [
    'an address that is no block',
    'network: {extraBlockedCIDRs: [100.64.0.0/10, 10.0.0.0]}',
    'f.yaml: network.extraBlockedCIDRs[1]: "10.0.0.0" is not in CIDR notation, such as 100.64.0.0/10.',
  ],
  [
    'another version',
    'apiVersion: sandgate.dev/v1alpha2',
    'f.yaml: apiVersion: "sandgate.dev/v1alpha2" is not a known value. Did you mean "sandgate.dev/v1alpha1"?',
  ],
  ['the same key twice', 'rules: {}\nrules: {}', 'f.yaml: line 2, column 1: Map keys must be unique'],
  [
    'the same key twice in a section',
    'pools:\n  maxBatch: 1\n  maxBatch: 2',
    'f.yaml: line 3, column 3: Map keys must be unique',
  ],
  ['a list', '- rules', 'f.yaml: it must be a mapping of options to values.'],
  ['a word', 'rules', 'f.yaml: it must be a mapping of options to values.'],
]

for (const [name, text, message] of rows) {
  t.test(`${name} is an error that names path, value and what to write`, async (t) => {
    t.throws(() => parseConfig(text, 'f.yaml'), { name: 'ConfigError', code: 'ConfigInvalid', message })
  })
}

t.test('broken YAML is an error of one line that names the place', async (t) => {
  try {
    parseConfig('rules:\n  a: [', 'f.yaml')
    t.fail('it was accepted')
  } catch (error) {
    t.ok(error instanceof ConfigError)
    t.match((error as ConfigError).message, /^f\.yaml: line \d+, column \d+: [^\n]+$/)
  }
})

t.test('a file is read from disk; one that cannot be read is an error with a code of its own', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'sandgate-config-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const path = join(directory, 'config.yaml')
  await writeFile(path, 'pools: {maxReplicas: 7}')
  t.equal((await loadConfig(path)).pools.maxReplicas, 7)
  await t.rejects(loadConfig(join(directory, 'none.yaml')), {
    name: 'ConfigError',
    code: 'ConfigUnreadable',
    message: `${join(directory, 'none.yaml')}: cannot be read (ENOENT). Check the path and its permissions.`,
  })
})
