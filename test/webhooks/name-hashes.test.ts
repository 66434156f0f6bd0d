import t from 'tap'
import { nameHash } from '../../src/api/hash.ts'
import type { Subject } from '../../src/policy/rule.ts'
import { sameHash } from '../../webhooks/name-hashes.ts'
import { emptyStores } from './stores.ts'

const object = (name: string, namespace = 'ns') =>
  ({ metadata: { name, namespace }, spec: { sandboxTemplateRef: { name: 't' } } }) as never
const subject = (kind: Subject['kind'], name: string): Subject => ({
  kind,
  object: object(name),
  operation: 'CREATE',
  namespace: 'ns',
  actor: 'user',
  username: 'alice',
})
const found = (kind: string, name: string) => ({ kind: 'found', value: { kind, metadata: { name } } })
/** Found by trying some 100,000 names. */
const [one, other] = ['a16c30038', 'bc190b0a7']
/** `plain` and `SandboxSet/<ofSet>` have the same hash. */
const [plain, ofSet] = ['a312984e4', 'bd38511a0']

t.test('the names of this test do collide', async (t) => {
  t.equal(nameHash(one), nameHash(other))
  t.equal(nameHash(plain), nameHash(`SandboxSet/${ofSet}`))
})

t.test(
  'two objects of a kind with the same hash are found, in one namespace only, and not the object itself',
  async (t) => {
    for (const [kind, store] of [
      ['SandboxTemplate', 'templates'],
      ['SandboxWarmPool', 'warmPools'],
      ['Sandbox', 'sandboxes'],
    ] as const) {
      const stores = emptyStores()
      stores[store].set(object(other))
      stores[store].set(object('unrelated'))
      t.match(sameHash(subject(kind, one), stores), found(kind, other), kind)
      t.strictSame(sameHash(subject(kind, other), stores), { kind: 'missing' }, 'itself')
      const elsewhere = emptyStores()
      elsewhere[store].set(object(other, 'other'))
      t.strictSame(sameHash(subject(kind, one), elsewhere), { kind: 'missing' })
    }
  },
)

t.test('both pool kinds share one space, where a set counts with its kind', async (t) => {
  const stores = emptyStores()
  stores.sets.set(object(ofSet))
  t.match(sameHash(subject('SandboxWarmPool', plain), stores), found('SandboxSet', ofSet))
  stores.warmPools.set(object(plain))
  t.match(sameHash(subject('SandboxSet', ofSet), stores), found('SandboxWarmPool', plain))
  t.strictSame(
    sameHash(subject('SandboxWarmPool', ofSet), stores),
    { kind: 'missing' },
    'the same name is no collision',
  )
})

t.test("a template shares its space with the sets' inline templates", async (t) => {
  const stores = emptyStores()
  stores.sets.set(object(ofSet))
  t.match(sameHash(subject('SandboxTemplate', plain), stores), found('SandboxSet', ofSet))
  const reversed = emptyStores()
  reversed.templates.set(object(plain))
  t.match(sameHash(subject('SandboxSet', ofSet), reversed), found('SandboxTemplate', plain))
})

t.test('claims and Pods are in no space', async (t) => {
  const stores = emptyStores()
  stores.sandboxes.set(object(other))
  for (const kind of ['SandboxClaim', 'Pod'] as const) {
    t.strictSame(sameHash(subject(kind, one), stores), { kind: 'missing' })
  }
})
