import type { Logger } from 'pino'
import type { KubeClient } from '../kube/client.ts'
import type { Clock } from '../runtime/clock.ts'
import type { EventRecorder } from '../telemetry/events.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ReadinessCheck } from '../telemetry/probes.ts'
import type { Caches } from './caches.ts'
import type { Configuration } from './configuration.ts'

/** What the gate and the reconcilers of one process share. */
export interface ServeContext {
  readonly client: KubeClient
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly events: EventRecorder
  readonly caches: Caches
  readonly configuration: Configuration
  /** The namespace that sandgate itself is installed in. */
  readonly namespace: string
  /** Adds a condition of readiness. */
  addCheck(check: ReadinessCheck): void
}
