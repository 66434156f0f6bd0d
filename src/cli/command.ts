import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'

/** Exit codes of every subcommand. `check` gives 1 its own meaning: a refusal. */
export const exitCodes = { ok: 0, failed: 1, usage: 2 } as const

/** A failure whose message is one line that says what to do; it is printed as it is, without a stack. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number

  constructor(message: string, exitCode: number = exitCodes.failed, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.exitCode = exitCode
  }
}

/** A subcommand of `sandgate`. */
export interface Command {
  readonly name: string
  readonly summary: string
  /** The whole help text, with examples. */
  readonly help: string
  /** Resolves to the exit code. */
  run(args: readonly string[]): Promise<number>
}

/** Parses flags strictly: an unknown one, or a missing value, is a usage error that points to `--help`. */
export function parseFlags<const O extends ParseArgsOptionsConfig>(
  command: string,
  args: readonly string[],
  options: O,
) {
  return parseArguments(command, args, options, false).values
}

/** {@link parseFlags} for a command that also takes arguments which are not flags. */
export function parseArguments<const O extends ParseArgsOptionsConfig>(
  command: string,
  args: readonly string[],
  options: O,
  allowPositionals = true,
) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals })
  } catch (error) {
    // Node explains at length, after a full stop or on further lines.
    const problem = error instanceof Error ? (error.message.split(/\.(?:\s|$)/)[0] ?? '') : String(error)
    throw new CommandError(`${problem}. See 'sandgate ${command} --help'.`, exitCodes.usage, error)
  }
}

/** A flag that takes one of a few words. */
export function choiceFlag<const C extends string>(
  command: string,
  flag: string,
  value: string,
  choices: readonly C[],
): C {
  const chosen = choices.find((choice) => choice === value)
  if (chosen !== undefined) return chosen
  throw new CommandError(
    `--${flag} takes one of ${choices.join(', ')}, not '${value}'. See 'sandgate ${command} --help'.`,
    exitCodes.usage,
  )
}

/** A port flag: 0 to 65535. */
export function portFlag(command: string, flag: string, value: string): number {
  const port = Number(value)
  if (/^\d+$/.test(value) && port <= 65_535) return port
  throw new CommandError(
    `--${flag} takes a port from 0 to 65535, not '${value}'. See 'sandgate ${command} --help'.`,
    exitCodes.usage,
  )
}

/** A flag that is a whole number of seconds. */
export function secondsFlag(command: string, flag: string, value: string): number {
  if (/^\d+$/.test(value)) return Number(value)
  throw new CommandError(
    `--${flag} takes whole seconds, not '${value}'. See 'sandgate ${command} --help'.`,
    exitCodes.usage,
  )
}
