import type { KubeClient } from './client.ts'
import { KubeError } from './errors.ts'

/**
 * The client, with every write refused as `Aborted` unless `mayWrite` holds at that moment. Whoever no longer leads, or
 * whose lease would run out while a write is under way, sends none.
 */
export function fencedClient(client: KubeClient, mayWrite: () => boolean): KubeClient {
  const guard = () => {
    if (!mayWrite())
      throw new KubeError('Aborted', 'this process does not lead, or is about to stop leading', { status: 0 })
  }
  return {
    get: (...call) => client.get(...call),
    list: (...call) => client.list(...call),
    watch: (...call) => client.watch(...call),
    serverClockOffsetMs: () => client.serverClockOffsetMs(),
    close: () => client.close(),
    async create(...call) {
      guard()
      return await client.create(...call)
    },
    async replace(...call) {
      guard()
      return await client.replace(...call)
    },
    async patch(...call) {
      guard()
      return await client.patch(...call)
    },
    async delete(...call) {
      guard()
      await client.delete(...call)
    },
  }
}
