import {
  sandboxKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxTemplate,
} from '../../src/api/kinds.ts'
import { poolHash } from '../../src/api/hash.ts'
import { conditionTypes, labels } from '../../src/api/vocabulary.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { follow, type Follower } from './follower.ts'
import { namespace, type Stage } from './stage.ts'

/** The Sandboxes of a stage, with a running count of those that pools have ready. */
export interface Stock {
  readonly sandboxes: Follower<Sandbox>
  /** Ready members of this pool, by name. */
  ready(pool: string): ReadonlySet<string>
  /** Resolves with the time at which the pool has at least so many ready members. */
  whenReady(pool: string, count: number, withinMs?: number): Promise<number>
}

export async function followStock(stage: Stage): Promise<Stock> {
  const sandboxes = await follow(stage, sandboxKind)
  const readyOf = new Map<string, Set<string>>()
  // Only the sets that change are touched: counting a pool of a thousand for each event would be the client's own cost.
  sandboxes.onChange(({ kind, object }) => {
    const { name = '', labels: marks, deletionTimestamp } = object.metadata
    const hash = marks?.[labels.warmPool]
    const isReady = kind !== 'deleted' && deletionTimestamp === undefined && isTrue(object)
    for (const [pool, names] of readyOf) if (pool !== hash || !isReady) names.delete(name)
    if (hash === undefined || !isReady) return
    const names = readyOf.get(hash) ?? new Set()
    readyOf.set(hash, names.add(name))
  })
  const ready = (pool: string) => readyOf.get(poolHash('SandboxWarmPool', pool)) ?? new Set<string>()
  return {
    sandboxes,
    ready,
    whenReady: (pool, count, withinMs) =>
      sandboxes.when(`${count} ready in pool ${pool}`, () => ready(pool).size >= count, withinMs),
  }
}

function isTrue({ status }: Sandbox): boolean {
  return findCondition(status?.conditions, conditionTypes.ready)?.status === 'True'
}

/** The template that all pools here are made from. */
export async function createTemplate({ client }: Stage): Promise<void> {
  const template: SandboxTemplate = {
    metadata: { namespace, name: 'python' },
    spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3.13-slim' }] } } },
  }
  await client.create(sandboxTemplateKind, template)
}

export async function createPool({ client }: Stage, name: string, replicas: number): Promise<void> {
  const spec = { replicas, sandboxTemplateRef: { name: 'python' } }
  await client.create(sandboxWarmPoolKind, { metadata: { namespace, name }, spec })
}

export async function scalePool({ client }: Stage, name: string, replicas: number): Promise<void> {
  await client.patch(sandboxWarmPoolKind, { namespace, name }, { spec: { replicas } }, { type: 'merge' })
}
