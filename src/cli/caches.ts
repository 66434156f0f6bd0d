import type { Logger } from 'pino'
import { byNamespace, namespaceIndex } from '../../webhooks/facts.ts'
import { byNameHash, bySetHash, byWarmPoolHash, nameHashIndex } from '../../webhooks/name-hashes.ts'
import { namespaces, networkPolicies, persistentVolumeClaims, pods, services } from '../api/core.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
} from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import type { Informers } from '../controllers/dependencies.ts'
import {
  byController,
  claimIndexes,
  indexes,
  sandboxIndexes,
  setIndexes,
  warmPoolIndexes,
} from '../controllers/indexes.ts'
import type { KubeClient } from '../kube/client.ts'
import type { KubeObject, Resource } from '../kube/object.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Informer } from '../runtime/informer.ts'
import { createReflector } from '../runtime/reflector.ts'
import type { IndexFunction } from '../runtime/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** The caches of one process, shared by its gate and its reconcilers. */
export interface Caches {
  readonly informers: Informers
  /** Resolves when every cache holds its first full list. */
  readonly synced: Promise<void>
  /** Names of the resources that have not been listed yet. */
  pending(): string[]
  /** Follows the API server until the signal ends. */
  run(signal: AbortSignal): Promise<void>
  /** Brings every cache up to date with a quorum read. */
  relist(signal: AbortSignal): Promise<void>
}

export interface CacheOptions {
  /** Decides, with what the roles in the manifests allow, which resources are followed. The other caches stay empty. */
  readonly runs: { readonly reconcilers: boolean; readonly sandboxController: boolean }
  readonly client: KubeClient
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

export function createCaches({ runs, client, clock, log, metrics }: CacheOptions): Caches {
  const all: { resource: Resource; informer: Pick<Informer<KubeObject>, 'synced' | 'hasSynced' | 'run' | 'relist'> }[] =
    []
  const cache = <T extends KubeObject>(
    resource: Resource<T>,
    own: Record<string, IndexFunction<T>> = {},
    { labelSelector, isFollowed = true }: { labelSelector?: string; isFollowed?: boolean } = {},
  ): Informer<T> => {
    const informer = createReflector({
      client,
      resource,
      indexes: own,
      clock,
      log: log.child({ cache: resource.plural }),
      onRestart: (reason) => metrics.reflectorRestarts.inc({ reason }),
      ...(labelSelector !== undefined && { labelSelector }),
    })
    if (isFollowed) all.push({ resource, informer })
    return informer
  }
  const owned = { [indexes.controllerUid]: byController }
  const labelSelector = labels.sandboxNameHash

  const informers: Informers = {
    sandboxes: cache(sandboxKind, { ...sandboxIndexes, [nameHashIndex]: byNameHash }),
    claims: cache(sandboxClaimKind, { ...claimIndexes, [namespaceIndex]: byNamespace }),
    templates: cache(sandboxTemplateKind, { [nameHashIndex]: byNameHash }),
    warmPools: cache(sandboxWarmPoolKind, { ...warmPoolIndexes, [nameHashIndex]: byWarmPoolHash }),
    sets: cache(sandboxSetKind, { ...setIndexes, [nameHashIndex]: bySetHash }),
    pods: cache(pods, owned, { labelSelector, isFollowed: runs.reconcilers }),
    services: cache(services, owned, { labelSelector, isFollowed: runs.sandboxController }),
    volumeClaims: cache(persistentVolumeClaims, owned, { labelSelector, isFollowed: runs.sandboxController }),
    networkPolicies: cache(networkPolicies),
    namespaces: cache(namespaces),
  }
  return {
    informers,
    synced: Promise.all(all.map(({ informer }) => informer.synced)).then(() => undefined),
    pending: () => all.filter(({ informer }) => !informer.hasSynced).map(({ resource }) => resource.plural),
    run: async (signal) => void (await Promise.all(all.map(({ informer }) => informer.run(signal)))),
    relist: async (signal) => void (await Promise.all(all.map(({ informer }) => informer.relist(signal)))),
  }
}
