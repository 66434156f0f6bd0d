import type { KubeClient } from '../src/kube/client.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { refKey, type KubeObject, type ObjectRef, type Resource } from '../src/kube/object.ts'
import type { Known } from '../src/policy/rule.ts'
import type { ReadStore } from '../src/runtime/store.ts'
import type { Deadline } from './deadline.ts'

/** Finds one object. Never rejects: what cannot be found out in time is unknown. */
export type Find = <T extends KubeObject>(
  store: ReadStore<T>,
  resource: Resource<T>,
  ref: ObjectRef,
) => Promise<Known<T>>

/** Asks the API server, whatever the cache holds. */
export function liveFind(client: Pick<KubeClient, 'get'>, deadline: Deadline): Find {
  return async (_store, resource, ref) => {
    try {
      return { kind: 'found', value: await deadline.limit((signal) => client.get(resource, ref, { signal })) }
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return { kind: 'missing' }
      return { kind: 'unknown', because: error instanceof Error ? error.message : String(error) }
    }
  }
}

/** Looks in the cache; a miss is confirmed by one read, since within one `kubectl apply` the cache trails what it made. */
export function cachedFind(client: Pick<KubeClient, 'get'>, deadline: Deadline): Find {
  const live = liveFind(client, deadline)
  return async (store, resource, ref) => {
    const known = inCache(store, ref)
    return known.kind === 'found' ? known : await live(store, resource, ref)
  }
}

/** What the cache alone says: for facts that only ever warn. */
export function inCache<T extends KubeObject>(store: ReadStore<T>, ref: ObjectRef): Known<T> {
  const value = store.get(refKey(ref))
  return value ? { kind: 'found', value } : { kind: 'missing' }
}
