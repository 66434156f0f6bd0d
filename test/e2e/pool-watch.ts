import type { Test } from 'tap'
import type { Sandbox, SandboxSet } from '../../src/api/kinds.ts'
import { conditionTypes, labels } from '../../src/api/vocabulary.ts'
import type { KubeClient } from '../../src/kube/client.ts'
import type { KubeObject, Resource } from '../../src/kube/object.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Change, ReadStore } from '../../src/runtime/store.ts'
import { createReflector } from '../../src/runtime/reflector.ts'
import { createLogger } from '../../src/telemetry/logger.ts'

export interface Following<T extends KubeObject> {
  /** Every change that the API server told of, oldest first. A watch leaves none out. */
  readonly changes: readonly Change<T>[]
  readonly store: ReadStore<T>
  /** Stops listening. What has been seen stays. */
  stop(): Promise<void>
}

/** Watches a resource in one namespace from now on; `see` is called at each change, after the store is updated. */
export async function follow<T extends KubeObject>(
  t: Test,
  client: KubeClient,
  resource: Resource<T>,
  namespace: string,
  see: (store: ReadStore<T>, change: Change<T>) => void = () => {},
): Promise<Following<T>> {
  const stopping = new AbortController()
  const log = createLogger({ level: 'error' })
  const informer = createReflector({ client, clock: systemClock, log, resource, namespace })
  const changes: Change<T>[] = []
  informer.onChange((change) => {
    changes.push(change)
    see(informer.store, change)
  })
  const running = informer.run(stopping.signal)
  await informer.synced
  const stop = async () => {
    stopping.abort()
    await running
  }
  t.teardown(stop)
  return { changes, store: informer.store, stop }
}

/** Unclaimed sandboxes of the pool with this UID that are not being deleted. */
export function stockOf(sandboxes: Iterable<Sandbox>, poolUid: string | undefined): Sandbox[] {
  return [...sandboxes].filter(
    ({ metadata }) =>
      metadata.labels?.[labels.warmPool] !== undefined &&
      metadata.deletionTimestamp === undefined &&
      metadata.ownerReferences?.some(({ uid }) => uid === poolUid),
  )
}

export function isReady({ status }: Sandbox): boolean {
  return findCondition(status?.conditions, conditionTypes.ready)?.status === 'True' && !!status?.podIPs?.length
}

export function imageOf({ spec }: Sandbox): string | undefined {
  return (spec.podTemplate.spec as { containers: { image: string }[] }).containers[0]?.image
}

/** The statuses of a set in the order in which they were written, without repetitions of what the rows show. */
export function statusesOf(changes: readonly Change<SandboxSet>[], name: string): NonNullable<SandboxSet['status']>[] {
  return changes.flatMap(({ object }) => (object.metadata.name === name && object.status ? [object.status] : []))
}
