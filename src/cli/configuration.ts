import type { Logger } from 'pino'
import { ConfigError } from '../config/load.ts'
import { defaultConfig, type Config } from '../config/schema.ts'
import { watchConfig } from '../config/watch.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { CommandError, exitCodes } from './command.ts'

/** The configuration in force, which follows its file. */
export interface Configuration {
  readonly current: Config
  /** Why the file as it is now is not in force; undefined while it is. */
  readonly problem: string | undefined
  onChange(listener: () => void): void
  close(): void
}

export interface ConfigurationOptions {
  /** Absent: the defaults, for good. */
  readonly path: string | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'configReloadFailed'>
}

/** Loads the configuration; a file that cannot be used at the start ends the command with one line that says why. */
export async function loadConfiguration({ path, clock, log, metrics }: ConfigurationOptions): Promise<Configuration> {
  if (path === undefined) return { current: defaultConfig, problem: undefined, onChange: () => {}, close: () => {} }
  const listeners: (() => void)[] = []
  try {
    const watched = await watchConfig({
      path,
      clock,
      onChange() {
        log.info({ path }, 'another configuration is in force')
        for (const listener of listeners) listener()
      },
      onProblem: (problem) =>
        log.error({ path, problem: problem.message }, 'the new configuration is not used; the old one stays in force'),
    })
    metrics.configReloadFailed.measure(() => [{ labels: {}, value: watched.problem() ? 1 : 0 }])
    return {
      get current() {
        return watched.current()
      },
      get problem() {
        return watched.problem()?.message
      },
      onChange: (listener) => void listeners.push(listener),
      close: () => watched.close(),
    }
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message, exitCodes.failed, error)
    throw error
  }
}
