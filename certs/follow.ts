import type { KubeClient } from '../src/kube/client.ts'
import type { Clock } from '../src/runtime/clock.ts'
import type { ConfigurationName } from './ca-bundle.ts'

export interface FollowOptions {
  readonly client: Pick<KubeClient, 'list' | 'watch'>
  readonly clock: Clock
  readonly configurations: readonly ConfigurationName[]
  readonly onChange: () => void
}

/** Between two watches: a server that closes each at once must not be asked in a tight loop. */
const pauseMs = 2000
const watchSeconds = 300

/** Calls `onChange` soon after one of the configurations changes. Only a hint: what it misses, the next check finds. */
export async function followConfigurations(options: FollowOptions, signal: AbortSignal): Promise<void> {
  await Promise.all(options.configurations.map((configuration) => follow(configuration, options, signal)))
}

async function follow(
  { resource, name }: ConfigurationName,
  { client, clock, onChange }: FollowOptions,
  signal: AbortSignal,
): Promise<void> {
  const fieldSelector = `metadata.name=${name}`
  while (!signal.aborted) {
    try {
      const { metadata } = await client.list(resource, { fieldSelector, signal })
      const resourceVersion = metadata.resourceVersion ?? '0'
      onChange()
      const events = await client.watch(resource, {
        fieldSelector,
        resourceVersion,
        timeoutSeconds: watchSeconds,
        signal,
      })
      for await (const { type } of events) if (type !== 'BOOKMARK') onChange()
    } catch {
      // The regular check reports what is wrong with the API server; here there is only a hint to lose.
    }
    await clock.sleep(pauseMs, signal)
  }
}
