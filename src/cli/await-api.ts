import type { Logger } from 'pino'
import { kinds } from '../api/kinds.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Clock } from '../runtime/clock.ts'

const retryMs = 2_000
/** A waiting process says so now and then, not each time it looks. */
const repeatMs = 30_000

/**
 * Waits until the API server answers and serves every kind of ours, saying what it waits for. Missing rights are waited
 * for as well: in an install they may be granted a moment later than the process starts.
 */
export async function awaitApi(
  { client, clock, log, server }: { client: KubeClient; clock: Clock; log: Logger; server: URL },
  signal: AbortSignal,
): Promise<void> {
  let said = { problem: '', at: 0 }
  for (;;) {
    const problem = await problemOf(client, server)
    if (problem === undefined || signal.aborted) return
    if (problem !== said.problem || clock.now() - said.at >= repeatMs) {
      log.warn(problem)
      said = { problem, at: clock.now() }
    }
    await clock.sleep(retryMs, signal)
  }
}

async function problemOf(client: KubeClient, server: URL): Promise<string | undefined> {
  const missing: string[] = []
  for (const kind of kinds) {
    try {
      await client.list(kind, { limit: 1 })
    } catch (error) {
      if (isKubeError(error, 'NotFound')) missing.push(`${kind.plural}.${kind.group}`)
      else
        return `waiting for the API server at ${server.origin}: ${error instanceof Error ? error.message : String(error)}`
    }
  }
  if (missing.length === 0) return undefined
  return `waiting for CustomResourceDefinitions: ${missing.join(', ')}. Install them with 'kubectl apply -k manifests/crds'.`
}
