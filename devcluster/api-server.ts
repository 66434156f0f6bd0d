import type { AdminApi } from './admin-api.ts'
import { cpuMsOf } from './cpu-time.ts'
import type { ManagedProcess } from './processes.ts'
import { waitUntil } from './wait.ts'

/** The API server, which a test can take away and bring back on the same port. */
export interface ApiServer {
  readonly logFile: string
  /**
   * Ends it; default SIGKILL, a crash. SIGTERM makes it wait for the watches that are open, and kills it 3 s later.
   */
  stop(signal?: NodeJS.Signals): Promise<void>
  /** Starts it again and resolves once it is ready. */
  start(): Promise<void>
  /** {@link stop}, then {@link start}. */
  restart(signal?: NodeJS.Signals): Promise<void>
  /** CPU time the process has used, in milliseconds; Linux only. It begins again at 0 with a restart. */
  cpuMs(): Promise<number>
  /** Its own metrics, in Prometheus' text format. */
  metrics(): Promise<string>
}

/** It takes three seconds on two cores, nearly all of it CPU time; other processes may want those cores too. */
const readyWithinMs = 60_000

/**
 * Starts the API server with `launch` and resolves once it is ready. `failed` resolves when a process ends that
 * nobody asked to end; then this rejects with its error.
 */
export async function startApiServer(
  api: AdminApi,
  launch: () => Promise<ManagedProcess>,
  failed: Promise<Error>,
): Promise<ApiServer> {
  const untilReady = async (): Promise<void> =>
    waitUntil('the API server', () => api.answers('/readyz'), { withinMs: readyWithinMs, failed })
  let current = await launch()
  await untilReady()

  const server: ApiServer = {
    logFile: current.logFile,
    stop: (signal = 'SIGKILL') => current.stop(signal),
    async start() {
      current = await launch()
      await untilReady()
    },
    async restart(signal) {
      await server.stop(signal)
      await server.start()
    },
    cpuMs: () => cpuMsOf(current.pid),
    metrics: () => api.text('/metrics'),
  }
  return server
}
