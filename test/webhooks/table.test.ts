import * as fc from 'fast-check'
import t from 'tap'
import { labels } from '../../src/api/vocabulary.ts'
import type { LabelSelector } from '../../src/api/schema.ts'
import { webhookConfigurations, webhooks } from '../../webhooks/table.ts'

const clientConfig = { service: { name: 'gate', namespace: 'own' } }
interface Entry {
  name: string
  rules: { apiGroups: string[]; resources: string[]; operations: string[]; scope: string }[]
  clientConfig: Record<string, unknown>
  namespaceSelector: LabelSelector
  objectSelector?: LabelSelector
  [field: string]: unknown
}
const entriesOf = (options: Parameters<typeof webhookConfigurations>[0]) =>
  webhookConfigurations(options).map((each) => (each as unknown as { webhooks: Entry[] }).webhooks)
const [mutating = [], validating = []] = entriesOf({ clientConfig, ownNamespace: 'own' })
const all = [...mutating, ...validating]

t.test('names are unique and domain names of three parts or more', async (t) => {
  t.equal(new Set(webhooks.map(({ name }) => name)).size, webhooks.length)
  for (const { name } of webhooks) t.match(name, /^[a-z-]+(\.[a-z-]+){2,}$/)
})

t.test('every entry has what the protocol asks for, and nothing that 1.20 does not know', async (t) => {
  const fields = new Set([
    'name',
    'admissionReviewVersions',
    'clientConfig',
    'rules',
    'namespaceSelector',
    'objectSelector',
    'matchPolicy',
    'failurePolicy',
    'sideEffects',
    'timeoutSeconds',
    'reinvocationPolicy',
  ])
  for (const entry of all) {
    t.match(entry, {
      admissionReviewVersions: ['v1'],
      matchPolicy: 'Equivalent',
      sideEffects: 'NoneOnDryRun',
      timeoutSeconds: 5,
    })
    t.strictSame(
      Object.keys(entry).filter((field) => !fields.has(field)),
      [],
    )
    t.ok(entry.rules.every(({ scope }) => scope === 'Namespaced'))
  }
  for (const entry of mutating) t.equal(entry['reinvocationPolicy'], 'IfNeeded')
  for (const entry of validating) t.equal(entry['reinvocationPolicy'], undefined)
})

t.test('deletions are asked about with failurePolicy Ignore, everything else with Fail', async (t) => {
  for (const { rules, failurePolicy, name } of all) {
    const isDeletion = rules.some(({ operations }) => operations.includes('DELETE'))
    t.equal(failurePolicy, isDeletion ? 'Ignore' : 'Fail', name)
    if (isDeletion) t.ok(rules.every(({ operations }) => operations.length === 1))
  }
})

t.test(
  'the own namespace is left out of every entry, by a selector that matches namespaces without the label',
  async (t) => {
    const values = ['own']
    for (const { namespaceSelector } of all) {
      t.strictSame(namespaceSelector, {
        matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values }],
      })
    }
  },
)

t.test('manifests carry no caBundle unless one is given', async (t) => {
  for (const entry of all) t.notOk('caBundle' in entry.clientConfig)
  for (const entry of entriesOf({ clientConfig, ownNamespace: 'own', caBundle: 'Q0E=' }).flat()) {
    t.equal(entry.clientConfig['caBundle'], 'Q0E=')
  }
})

t.test('a gate outside the cluster is registered by URL, each webhook with its path', async (t) => {
  const [first] = entriesOf({ clientConfig: { url: 'https://127.0.0.1:9443/' }, ownNamespace: 'own' })
  t.strictSame(first?.[0]?.clientConfig, { url: 'https://127.0.0.1:9443/mutate/claims' })
  t.strictSame(mutating[0]?.clientConfig, { service: { name: 'gate', namespace: 'own', path: '/mutate/claims' } })
})

t.test('what is registered is exactly this', async (t) => {
  const registered = (entries: Entry[]) =>
    entries.flatMap(({ rules }) =>
      rules.flatMap(({ resources, operations }) => resources.map((resource) => `${resource} ${operations.join()}`)),
    )
  t.strictSame(registered(mutating), [
    'sandboxclaims CREATE,UPDATE',
    'sandboxtemplates CREATE,UPDATE',
    'sandboxsets CREATE,UPDATE',
    'sandboxes CREATE',
  ])
  t.strictSame(registered(validating), [
    'sandboxclaims CREATE,UPDATE',
    'sandboxtemplates CREATE,UPDATE',
    'sandboxwarmpools CREATE,UPDATE',
    'sandboxsets CREATE,UPDATE',
    'sandboxes CREATE,UPDATE',
    'sandboxwarmpools/scale UPDATE',
    'sandboxsets/scale UPDATE',
    'pods CREATE,UPDATE',
    'pods CREATE,UPDATE',
    'pods CREATE,UPDATE',
    'pods/ephemeralcontainers UPDATE',
    'sandboxtemplates DELETE',
    'sandboxes DELETE',
  ])
})

/** As the API server does it, for the operators that the table uses. */
function matches(selector: LabelSelector | undefined, object: Record<string, string>): boolean {
  return (selector?.matchExpressions ?? []).every(({ key, operator }) => key in object === (operator === 'Exists'))
}

t.test('a Pod is asked about exactly once when it bears any of the three labels, and never otherwise', async (t) => {
  const keys = [labels.sandboxNameHash, labels.warmPool, labels.templateRefHash]
  const podEntries = validating.filter(({ rules }) => rules[0]?.resources[0] === 'pods')
  fc.assert(
    fc.property(fc.subarray([...keys, 'app', labels.claimUid]), (present) => {
      const object = Object.fromEntries(present.map((key) => [key, 'x']))
      const asked = podEntries.filter(({ objectSelector }) => matches(objectSelector, object))
      return asked.length === (keys.some((key) => key in object) ? 1 : 0)
    }),
  )
  t.ok(podEntries.every(({ objectSelector }) => objectSelector))
})
