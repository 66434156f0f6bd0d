import { exitCodes } from './command.ts'

/** Ends with the first SIGTERM or SIGINT; a second one ends the process there and then. */
export function stopSignals(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(exitCodes.failed)
      stop.abort()
    })
  }
  return stop.signal
}
