import { pino } from 'pino'
import type { DestinationStream, Logger } from 'pino'
import pretty from 'pino-pretty'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

export interface LoggerOptions {
  level: LogLevel
  /** Readable lines instead of JSON; absent: exactly when standard error is a terminal. */
  pretty?: boolean
  /** Colours in readable lines; absent: on a terminal unless NO_COLOR is set. */
  colors?: boolean
  /** Where the lines go; absent: standard error, since standard output belongs to a command's result. */
  destination?: DestinationStream
}

/**
 * The process's logger. Lines are written synchronously: the last words before a crash are the ones that matter, and a
 * controller that logs enough for that to be slow logs too much.
 */
export function createLogger(options: LoggerOptions): Logger {
  const terminal = process.stderr.isTTY
  const destination = options.destination ?? pino.destination({ dest: 2, sync: true })
  const base = {
    level: options.level,
    // The pod's name is added by whatever collects the lines; a pid is always 1 there.
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: pino.stdSerializers.err },
  }
  if (!(options.pretty ?? terminal)) return pino(base, destination)
  const colorize = options.colors ?? (terminal && !process.env['NO_COLOR'])
  return pino(base, pretty({ colorize, translateTime: 'SYS:HH:MM:ss.l', destination }))
}
