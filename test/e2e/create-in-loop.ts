import type { KubeClient } from '../../src/kube/client.ts'
import type { KubeObject, Resource } from '../../src/kube/object.ts'
import { systemClock } from '../../src/runtime/clock.ts'

/** Creates one object after another until it is told to end. */
export interface CreationLoop {
  created(): number
  /** Resolves with what came of it: messages of the errors are in their order. */
  end(): Promise<{ created: number; refusals: string[] }>
}

/** Enough to be there in every moment that matters, and to leave the machine to the others. */
const pauseMs = 20

/** `next` gives the object of each round, counted from 0; `workers` (default 1) do a round each at a time. */
export function createInLoop(
  client: KubeClient,
  next: (round: number) => [Resource, KubeObject],
  { dryRun = false, workers = 1 }: { dryRun?: boolean; workers?: number } = {},
): CreationLoop {
  const refusals: string[] = []
  let created = 0
  let rounds = 0
  const over = new AbortController()
  const run = async () => {
    while (!over.signal.aborted) {
      const [resource, object] = next(rounds++)
      try {
        await client.create(resource, object, { dryRun })
        created++
      } catch (error) {
        refusals.push(error instanceof Error ? error.message : String(error))
      }
      await systemClock.sleep(pauseMs)
    }
  }
  const running = Promise.all(Array.from({ length: workers }, run))
  return {
    created: () => created,
    async end() {
      over.abort()
      await running
      return { created, refusals }
    },
  }
}
