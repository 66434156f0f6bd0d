import type { Logger } from 'pino'
import { refusedReason } from '../../webhooks/validate.ts'
import { events, type Event } from '../api/core.ts'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
} from '../api/kinds.ts'
import { parseConfig } from '../config/load.ts'
import { defaultConfig, type Config } from '../config/schema.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import type { KubeObject, Resource } from '../kube/object.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Informer } from '../runtime/informer.ts'
import { listPages } from '../runtime/list-pages.ts'
import { createReflector } from '../runtime/reflector.ts'
import { CommandError } from './command.ts'
import { install } from './manifests.ts'
import type { StatusObjects } from './status-report.ts'

/** A namespace, or all of them. */
export interface Scope {
  readonly namespace?: string
}

const refusals = { fieldSelector: `reason=${refusedReason}` }

/** Everything that a status is made from, read once. Rejects with a KubeError, or with one line for a cluster without sandgate. */
export async function readObjects(client: KubeClient, scope: Scope): Promise<StatusObjects> {
  const all = async <T extends KubeObject>(resource: Resource<T>, selected = {}): Promise<readonly T[]> => {
    const { items } = await listPages((page) => client.list(resource, { ...scope, ...selected, ...page }))
    return items
  }
  try {
    return {
      warmPools: await all(sandboxWarmPoolKind),
      sets: await all(sandboxSetKind),
      templates: await all(sandboxTemplateKind),
      sandboxes: await all(sandboxKind),
      claims: await all(sandboxClaimKind),
      refusals: await all<Event>(events, refusals),
    }
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error
    const advice = `Install sandgate there with 'sandgate manifests --image IMAGE | kubectl apply -f -'.`
    throw new CommandError(`the cluster does not know all kinds of sandgate. ${advice}`, undefined, error)
  }
}

/** The same, kept up to date. */
export interface Followed {
  current(): StatusObjects
  /** Called for every change, once all has been listed. */
  onChange(handler: () => void): void
  /** Follows until `signal` ends. */
  run(signal: AbortSignal): Promise<void>
}

export function followObjects(client: KubeClient, scope: Scope, clock: Clock, log: Logger): Followed {
  const all: Pick<Informer<KubeObject>, 'hasSynced' | 'synced' | 'onChange' | 'run'>[] = []
  const follow = <T extends KubeObject>(resource: Resource<T>, selected = {}): (() => readonly T[]) => {
    const informer = createReflector({ client, resource, ...scope, ...selected, clock, log })
    all.push(informer)
    return () => [...informer.store.values()]
  }
  const stores = {
    warmPools: follow(sandboxWarmPoolKind),
    sets: follow(sandboxSetKind),
    templates: follow(sandboxTemplateKind),
    sandboxes: follow(sandboxKind),
    claims: follow(sandboxClaimKind),
    refusals: follow<Event>(events, refusals),
  }
  return {
    current: () => ({
      warmPools: stores.warmPools(),
      sets: stores.sets(),
      templates: stores.templates(),
      sandboxes: stores.sandboxes(),
      claims: stores.claims(),
      refusals: stores.refusals(),
    }),
    onChange(handler) {
      const ifSynced = () => {
        if (all.every(({ hasSynced }) => hasSynced)) handler()
      }
      for (const informer of all) {
        informer.onChange(ifSynced)
        // An empty list changes nothing, and is news all the same.
        void informer.synced.then(ifSynced)
      }
    },
    run: async (signal) => void (await Promise.all(all.map((informer) => informer.run(signal)))),
  }
}

type ConfigMap = KubeObject & { data?: Record<string, string> }
const configMaps: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
}

/** The configuration of the sandgate that is installed in a namespace; undefined to those who may not read it. */
export async function readConfiguration(client: KubeClient, namespace: string): Promise<Config | undefined> {
  try {
    const { data } = await client.get(configMaps, { namespace, name: install.configMap })
    return parseConfig(data?.[install.configKey] ?? '', install.configMap)
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return defaultConfig
    // One that sandgate rejects as well is not in force, and which one is cannot be seen from here.
    return undefined
  }
}
