import t from 'tap'
import type { Sandbox, SandboxSet, SandboxWarmPool } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { candidateWorth, type Judgement } from '../../src/planning/candidate-worth.ts'
import { memberName } from '../../src/planning/recipe.ts'
import { poolOwner, type Pool } from '../../src/planning/pools.ts'
import { aSet, aWarmPool, member, recipeFor, type Looks } from '../support/pool-fixtures.ts'

const good: Judgement = { isProven: true, isFresh: true, hasOwnPod: true }
const warmPool = aWarmPool()
const set = aSet()

/** A member of the pool that looks like this; `addressed` ones have an address without being Ready. */
function of(
  pool: Pool,
  looks: Looks & { addressed?: boolean } = {},
  metadata: Partial<Sandbox['metadata']> = {},
): Sandbox {
  const { sandbox } = member(
    recipeFor(pool),
    memberName('m', () => 0),
    looks,
  )
  const withAddress = looks.addressed ? { ...sandbox.status, podIPs: ['10.0.0.1'] } : sandbox.status
  return { ...sandbox, metadata: { ...sandbox.metadata, ...metadata }, ...(withAddress && { status: withAddress }) }
}

t.test('a member is worth more to a claim the closer it is to being used', async (t) => {
  const rows: [Pool, Sandbox, Partial<Judgement>, string | undefined][] = [
    [warmPool, of(warmPool), {}, 'ready'],
    [warmPool, of(warmPool), { isFresh: false }, 'ready'],
    [warmPool, of(warmPool, { state: 'creating' }), {}, 'warming'],
    [warmPool, of(warmPool, { state: 'creating', addressed: true }), {}, 'addressed'],
    [set, of(set), {}, 'ready'],
    [set, of(set), { isFresh: false }, 'outdated'],
    [set, of(set, { state: 'creating' }), {}, 'warming'],
    [set, of(set, { state: 'creating', addressed: true }), {}, 'warming'],
  ]
  for (const [pool, sandbox, judgement, worth] of rows) {
    t.equal(candidateWorth(sandbox, pool, { ...good, ...judgement }), worth)
  }
})

t.test('stale members of a pool that recreates are not handed out, nor waited for', async (t) => {
  const recreating: SandboxWarmPool = aWarmPool({ updateStrategy: { type: 'Recreate' } })
  for (const looks of [{}, { state: 'creating' }] as const) {
    t.equal(candidateWorth(of(recreating, looks), recreating, { ...good, isFresh: false }), undefined)
    t.ok(candidateWorth(of(recreating, looks), recreating, good))
  }
})

t.test('one flaw is enough not to be handed out', async (t) => {
  const own = of(warmPool).metadata.labels ?? {}
  const without = (label: string) => Object.fromEntries(Object.entries(own).filter(([key]) => key !== label))
  const flawed: Record<string, [Sandbox, Partial<Judgement>?, Pool?]> = {
    'without proof of origin': [of(warmPool), { isProven: false }],
    'being deleted': [of(warmPool, {}, { deletionTimestamp: '2026-01-01T12:00:00Z' })],
    'of a pool that is being deleted': [
      of(warmPool),
      {},
      { ...warmPool, metadata: { ...warmPool.metadata, deletionTimestamp: '2026-01-01T12:00:00Z' } },
    ],
    'in another namespace': [of(warmPool, {}, { namespace: 'other' })],
    'of a predecessor of the pool': [of(warmPool, {}, { ownerReferences: [{ ...poolOwner(warmPool), uid: 'older' }] })],
    'without an owner': [of(warmPool, {}, { ownerReferences: [] })],
    'without the pool label': [of(warmPool, {}, { labels: without(labels.warmPool) })],
    'without labels': [{ ...of(warmPool), metadata: { ...of(warmPool).metadata, labels: undefined } as never }],
    'with the label of another pool': [of(warmPool, {}, { labels: { ...own, [labels.warmPool]: '00000000' } })],
    'without the template-ref hash': [of(warmPool, {}, { labels: without(labels.templateRefHash) })],
    'with a Pod that is not its own': [of(warmPool), { hasOwnPod: false }],
    'addressed, with a Pod that is not its own': [
      of(warmPool, { state: 'creating', addressed: true }),
      { hasOwnPod: false },
    ],
    finished: [of(warmPool, { state: 'failed' })],
    'due to end one day': [of(warmPool, { shutdownTime: '2030-01-01T00:00:00Z' })],
    suspended: [of(warmPool, { state: 'paused' })],
  }
  for (const [flaw, [sandbox, judgement = {}, pool = warmPool]] of Object.entries(flawed)) {
    t.equal(candidateWorth(sandbox, pool, { ...good, ...judgement }), undefined, flaw)
  }
})

t.test('before it has a Pod a member has none that could be another’s', async (t) => {
  const judgement = { ...good, hasOwnPod: false }
  t.equal(candidateWorth(of(warmPool, { state: 'creating' }), warmPool, judgement), 'warming')
})

t.test('a set by templateRef is judged as a set', async (t) => {
  const byRef: SandboxSet = aSet({ templateRef: { name: 'python' } })
  t.equal(candidateWorth(of(byRef), byRef, { ...good, isFresh: false }), 'outdated')
})
