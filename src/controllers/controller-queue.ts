import { WorkQueue } from '../runtime/work-queue.ts'
import type { ControllerDependencies } from './dependencies.ts'

/** A work queue whose depth, latency and retries are measured under the controller's name. */
export function createControllerQueue(
  name: string,
  { clock, metrics, random }: Pick<ControllerDependencies, 'clock' | 'metrics' | 'random'>,
): WorkQueue {
  const labels = { name }
  const queue: WorkQueue = new WorkQueue({
    clock,
    random,
    hooks: {
      onTaken: (waitedMs) => metrics.workqueueLatency.observe(labels, waitedMs / 1000),
      onRetry: () => metrics.workqueueRetries.inc(labels),
    },
  })
  metrics.workqueueDepth.measure(() => [{ labels, value: queue.depth }])
  return queue
}
