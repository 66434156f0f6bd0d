import { poolKindOf, type Pool } from '../planning/pools.ts'
import type { ControllerDependencies } from './dependencies.ts'
import type { PoolMemory } from './pool-memory.ts'
import { allPools } from './pool-wakes.ts'

/** Desired and present stock of every pool, read when the metrics are scraped. */
export function measurePools(deps: Pick<ControllerDependencies, 'informers' | 'metrics'>, memory: PoolMemory): void {
  const labelsOf = (pool: Pool) => ({
    kind: poolKindOf(pool),
    namespace: pool.metadata.namespace ?? '',
    pool: pool.metadata.name ?? '',
  })
  deps.metrics.poolDesiredReplicas.measure(() =>
    Array.from(allPools(deps), (pool) => ({ labels: labelsOf(pool), value: pool.spec.replicas ?? 1 })),
  )
  deps.metrics.poolReplicas.measure(() =>
    Array.from(allPools(deps)).flatMap((pool) =>
      Array.from(memory.statesOf(pool), ([state, value]) => ({ labels: { ...labelsOf(pool), state }, value })),
    ),
  )
}
