import type { Logger } from 'pino'
import type { NetworkPolicy, PersistentVolumeClaim, Pod, Service } from '../api/core.ts'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate, SandboxWarmPool } from '../api/kinds.ts'
import type { Config } from '../config/schema.ts'
import type { KubeClient } from '../kube/client.ts'
import type { KubeObject } from '../kube/object.ts'
import type { OriginKeys } from '../planning/origin.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Informer } from '../runtime/informer.ts'
import type { WorkQueue } from '../runtime/work-queue.ts'
import type { EventRecorder } from '../telemetry/events.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** The caches that the controllers share. */
export interface Informers {
  readonly sandboxes: Informer<Sandbox>
  readonly claims: Informer<SandboxClaim>
  readonly templates: Informer<SandboxTemplate>
  readonly warmPools: Informer<SandboxWarmPool>
  readonly sets: Informer<SandboxSet>
  /** Pods that carry the sandbox-name-hash label. */
  readonly pods: Informer<Pod>
  /** Services and volume claims that a Sandbox controls carry the same label. */
  readonly services: Informer<Service>
  readonly volumeClaims: Informer<PersistentVolumeClaim>
  readonly networkPolicies: Informer<NetworkPolicy>
  readonly namespaces: Informer<KubeObject>
}

/** What every controller is built from. */
export interface ControllerDependencies {
  readonly client: KubeClient
  readonly informers: Informers
  /** The configuration in force; it can change between two calls. */
  readonly config: () => Config
  /** Calls back after another configuration has come into force. */
  readonly onConfigChange: (listener: () => void) => void
  readonly originKeys: () => OriginKeys
  readonly clock: Clock
  readonly log: Logger
  readonly events: EventRecorder
  readonly metrics: Metrics
  /** How many claims are waiting to be bound: refill yields to them. */
  readonly claimsWaiting: () => number
  /** Random names and jitter; a parameter so that tests can fix it. */
  readonly random: () => number
}

/** A controller that has been wired to the caches and waits to be run. */
export interface Controller {
  readonly name: string
  readonly queue: WorkQueue
  /** Reconciles until the signal ends, then finishes what is under way. */
  run(signal: AbortSignal): Promise<void>
}
