import t from 'tap'
import { sandboxKind, type Sandbox } from '../../src/api/kinds.ts'
import { Candidates, type Appraise } from '../../src/controllers/candidates.ts'
import type { Worth } from '../../src/planning/rank-candidates.ts'
import { MemoryApi, type MemoryInformer } from '../support/memory-api.ts'

/** Candidates that are worth what their annotation `worth` says, in the pool that their label `pool` names. */
function aStock() {
  const api = new MemoryApi(() => 0)
  const informer: MemoryInformer<Sandbox> = api.informer(sandboxKind)
  const appraise: Appraise = ({ metadata }) => {
    const poolUid = metadata.labels?.['pool']
    const worth = (metadata.annotations?.['worth'] ?? 'ready') as Worth
    return poolUid === undefined ? undefined : { poolUid, worth }
  }
  const candidates = new Candidates(informer, appraise)
  const available: string[] = []
  candidates.onAvailable((poolUid) => void available.push(poolUid))
  const add = (name: string, worth: Worth = 'ready', pool = 'p') =>
    api.create(sandboxKind, {
      metadata: { name, namespace: 'ns', labels: { pool }, annotations: { worth } },
      spec: { podTemplate: { spec: { containers: [] } } },
    })
  const change = (name: string, metadata: object) =>
    api.patch(sandboxKind, { namespace: 'ns', name }, { metadata }, { type: 'merge' })
  const remove = (name: string) => api.delete(sandboxKind, { namespace: 'ns', name })
  const best = (pool = 'p') => {
    const stock = candidates.best(pool)
    return stock.kind === 'candidate' ? stock.sandbox.metadata.name : stock.kind
  }
  return { api, informer, candidates, available, add, change, remove, best }
}

t.test('each pool offers its own, the best first', async (t) => {
  const { add, best } = aStock()
  t.equal(best(), 'empty')
  await add('w', 'warming')
  t.equal(best(), 'warming')
  await add('a', 'addressed')
  await add('r')
  await add('other', 'ready', 'q')
  t.equal(best(), 'r')
  t.equal(best('q'), 'other')
})

t.test('it says so for each sandbox that can be handed out and could not before', async (t) => {
  const { add, change, available, candidates } = aStock()
  await add('w', 'warming')
  t.same(available, [])
  const ready = await change('w', { annotations: { worth: 'addressed' } })
  await change('w', { annotations: { worth: 'ready' } })
  t.same(available, ['p'], 'once')
  await add('b')
  candidates.take(ready)
  candidates.giveBack(ready)
  t.same(available, ['p', 'p', 'p'], 'also for one that is given back')
})

t.test('what is taken is invisible until it is given back', async (t) => {
  const { add, change, best, candidates } = aStock()
  const sandbox = await add('a')
  t.ok(candidates.isCandidate(sandbox, 'p'))
  candidates.take(sandbox)
  t.equal(best(), 'empty')
  t.notOk(candidates.isCandidate(sandbox, 'p'))
  await change('a', { annotations: { other: 'news' } })
  candidates.reappraise([sandbox])
  t.equal(best(), 'empty', 'whatever is heard of it')
  candidates.giveBack(sandbox)
  t.equal(best(), 'a')
})

t.test('what is adopted stays out though old news of it comes in, and its pool may have it back later', async (t) => {
  const { add, change, best, candidates, informer } = aStock()
  const sandbox = await add('a')
  informer.pause()
  await change('a', { annotations: { old: 'news' } })
  candidates.take(sandbox)
  candidates.adopted(await change('a', { labels: { pool: null } }))
  informer.deliver(1)
  t.equal(best(), 'empty', 'old news')
  informer.resume()
  t.equal(best(), 'empty', 'it belongs to a claim')
  await change('a', { labels: { pool: 'p' } })
  t.equal(best(), 'a', 'news that is newer than the adoption counts')
})

t.test('an adoption that the cache has shown already needs no memory', async (t) => {
  const { add, change, best, candidates } = aStock()
  const sandbox = await add('a')
  candidates.take(sandbox)
  candidates.adopted(await change('a', { labels: { pool: null } }))
  await change('a', { labels: { pool: 'p' } })
  t.equal(best(), 'a')
})

t.test('what was read live as still the pool’s is offered at that version', async (t) => {
  const { add, change, candidates, informer } = aStock()
  const sandbox = await add('a')
  informer.pause()
  candidates.take(sandbox)
  const current = await change('a', { annotations: { worth: 'addressed' } })
  candidates.refresh(current)
  t.same(candidates.best('p'), { kind: 'candidate', sandbox: current })
})

t.test('what turned out to be somebody else’s is not offered on old news', async (t) => {
  const { add, change, best, candidates, informer } = aStock()
  const sandbox = await add('a')
  informer.pause()
  await change('a', { annotations: { old: 'news' } })
  candidates.drop(sandbox, await change('a', { labels: { pool: null } }))
  informer.deliver(1)
  t.equal(best(), 'empty')
  informer.resume()
  await change('a', { labels: { pool: 'p' } })
  t.equal(best(), 'a')
})

t.test('what is gone is not offered, and one of its name that came after it is', async (t) => {
  const { add, change, remove, best, candidates, informer } = aStock()
  const sandbox = await add('a')
  informer.pause()
  await change('a', { annotations: { old: 'news' } })
  await remove('a')
  const successor = await add('a')
  candidates.drop(sandbox, successor)
  informer.deliver(1)
  t.equal(best(), 'empty')
  informer.resume()
  t.same(candidates.best('p'), { kind: 'candidate', sandbox: successor })
})

t.test('what is heard of one that the cache has seen go leaves nothing behind', async (t) => {
  const { add, remove, best, candidates } = aStock()
  const sandbox = await add('a')
  await remove('a')
  for (const late of [
    () => candidates.take(sandbox),
    () => candidates.adopted(sandbox),
    () => candidates.giveBack(sandbox),
    () => candidates.drop(sandbox, undefined),
  ]) {
    late()
    t.equal(best(), 'empty')
    t.notOk(isTaken(candidates, sandbox))
  }
})

t.test('a successor under its name is not given back in its place', async (t) => {
  const { add, remove, best, candidates } = aStock()
  const sandbox = await add('a')
  await remove('a')
  const successor = await add('a')
  candidates.take(successor)
  candidates.giveBack(sandbox)
  t.equal(best(), 'empty')
})

t.test('what moves to another pool, or is no candidate any more, leaves the first', async (t) => {
  const { add, change, best } = aStock()
  await add('a')
  await change('a', { labels: { pool: 'q' } })
  t.same([best('p'), best('q')], ['empty', 'a'])
  await change('a', { labels: { pool: null } })
  t.same([best('p'), best('q')], ['empty', 'empty'])
})

t.test('everything that is taken can be released at once', async (t) => {
  const { add, best, candidates } = aStock()
  candidates.take(await add('a'))
  candidates.take(await add('b'))
  candidates.releaseAll()
  t.equal(best(), 'a')
  t.notOk(isTaken(candidates, await add('c')))
})

/** One that is taken is no candidate, whatever pool it would be in. */
function isTaken(candidates: Candidates, sandbox: Sandbox): boolean {
  return !candidates.isCandidate(sandbox, sandbox.metadata.labels?.['pool'] ?? '')
}
