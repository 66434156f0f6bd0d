import t from 'tap'
import { defaultConfig } from '../../src/config/schema.ts'
import { poolSettings, resolveCount } from '../../src/planning/pool-view.ts'
import { allowance, paceAt, spend } from '../../src/planning/refill-pace.ts'
import { aSet, aWarmPool, noon, second } from '../support/pool-fixtures.ts'

t.test('a count stays, a percentage is rounded up, nonsense is neither', async (t) => {
  t.equal(resolveCount(3, 10), 3)
  t.equal(resolveCount(-1, 10), 0)
  t.equal(resolveCount('20%', 10), 2)
  t.equal(resolveCount('1%', 10), 1)
  t.equal(resolveCount('0%', 10), 0)
  t.equal(resolveCount('20%', 0), 0)
  for (const nonsense of ['20', '%', '-5%', 'all']) t.equal(resolveCount(nonsense, 10), undefined)
})

t.test('what is left out has the defaults of kinds.md', async (t) => {
  const { replicas: _one, ...spec } = aWarmPool().spec
  t.match(poolSettings({ ...aWarmPool(), spec }, defaultConfig), {
    desired: 1,
    strategy: { kind: 'replenish' },
    maxCreating: Infinity,
    maxBatch: 300,
    readinessGraceMs: 300 * second,
  })
  t.match(poolSettings(aSet({ replicas: 10 }), defaultConfig), {
    desired: 10,
    strategy: { kind: 'rolling', maxUnavailable: 2 },
    maxCreating: Infinity,
  })
})

t.test('a limit that admission would refuse is the careful one: none at a time', async (t) => {
  const set = aSet({ scaleStrategy: { maxUnavailable: 'many' }, updateStrategy: { maxUnavailable: 'many' } })
  t.match(poolSettings(set, defaultConfig), { maxCreating: 0, strategy: { maxUnavailable: 0 } })
})

t.test('a configured cap holds for pools that are older than it', async (t) => {
  const config = { ...defaultConfig, pools: { ...defaultConfig.pools, maxReplicas: 2 } }
  t.equal(poolSettings(aWarmPool({ replicas: 9 }), config).desired, 2)
})

t.test('refill pace', async (t) => {
  t.test('without a rate there is no limit', async (t) => {
    t.match(allowance(paceAt(undefined, undefined, noon), undefined), { creates: Infinity })
  })

  t.test('a bucket holds one second and fills at its rate', async (t) => {
    const full = paceAt(undefined, 4, noon)
    t.equal(allowance(full, 4).creates, 4)
    const empty = spend(full, 4)
    t.match(allowance(empty, 4), { creates: 0, nextAt: noon + 250 })
    t.equal(allowance(paceAt(empty, 4, noon + 600), 4).creates, 2)
    t.equal(allowance(paceAt(empty, 4, noon + 60 * second), 4).creates, 4)
  })

  t.test('fractions are not lost, however often it is looked at', async (t) => {
    let pace = spend(paceAt(undefined, 1, noon), 1)
    for (let ms = 100; ms <= 1000; ms += 100) pace = paceAt(pace, 1, noon + ms)
    t.ok(pace.tokens > 0.99)
  })

  t.test('a rate below one a second still reaches one', async (t) => {
    const empty = spend(paceAt(undefined, 0.5, noon), 1)
    t.match(allowance(empty, 0.5), { creates: 0, nextAt: noon + 2 * second })
    t.equal(allowance(paceAt(empty, 0.5, noon + 2 * second), 0.5).creates, 1)
  })

  t.test('a rate that is switched on starts with a full bucket', async (t) => {
    t.equal(allowance(paceAt(paceAt(undefined, undefined, noon), 3, noon), 3).creates, 3)
  })
})
