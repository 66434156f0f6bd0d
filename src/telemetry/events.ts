import type { Logger } from 'pino'
import type { KubeClient } from '../kube/client.ts'
import type { KubeObject } from '../kube/object.ts'
import type { Clock } from '../runtime/clock.ts'

export interface EventRecorder {
  /**
   * Notes that something happened to `object`. Returns at once and never throws: the Event is written later, after the
   * work it tells of, and repeats of the same (object, type, reason, message) only raise a count.
   */
  record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void
  /** Writes what is outstanding, each Event tried once more. For the end of the process; never rejects. */
  flush(): Promise<void>
}

export interface EventRecorderOptions {
  client: KubeClient
  /** Shown as the Event's source. */
  component: string
  clock: Clock
  log: Logger
}

export function createEventRecorder(_options: EventRecorderOptions): EventRecorder {
  throw new Error('not implemented')
}
