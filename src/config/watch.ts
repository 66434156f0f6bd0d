import { watch as watchDirectory, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Clock, Timer } from '../runtime/clock.ts'
import { ConfigError, parseConfig, readConfigText } from './load.ts'
import type { Config } from './schema.ts'

export interface ConfigWatchOptions {
  readonly path: string
  readonly clock: Clock
  /** A new configuration is in force. */
  readonly onChange?: (config: Config) => void
  /** The file has become unusable; the configuration before it stays in force. */
  readonly onProblem?: (problem: ConfigError) => void
}

/** The configuration in force, kept in step with its file. */
export interface WatchedConfig {
  current(): Config
  /** Why the file as it is now is not in force; undefined while it is. */
  problem(): ConfigError | undefined
  /** Reads the file again now. */
  reload(): Promise<void>
  close(): void
}

/** File systems that report no changes (network mounts) are looked at this often; the kubelet itself takes up to 60 s. */
const pollMs = 10_000
/** A ConfigMap update is several events in a row: links are made, renamed and removed. */
const settleMs = 100

/**
 * Loads a configuration file and follows its changes, also through the symbolic links of a mounted ConfigMap, which are
 * swapped beside the file. Rejects when the first load fails; later a bad file changes nothing but {@link WatchedConfig.problem}.
 */
export async function watchConfig({ path, clock, onChange, onProblem }: ConfigWatchOptions): Promise<WatchedConfig> {
  let text = await readConfigText(path)
  let config = parseConfig(text, path)
  let problem: ConfigError | undefined
  let isClosed = false
  let timer: Timer | undefined
  let reading: Promise<void> = Promise.resolve()

  // One read at a time, so that an older text never replaces a newer one.
  const reload = () => (reading = reading.then(readAgain))

  async function readAgain(): Promise<void> {
    const next = await attempt(() => readConfigText(path))
    if (isClosed || (next === text && !wasUnreadable())) return
    if (next instanceof ConfigError) return report(next)
    text = next
    const parsed = await attempt(async () => parseConfig(next, path))
    if (parsed instanceof ConfigError) return report(parsed)
    problem = undefined
    config = parsed
    onChange?.(config)
  }

  const wasUnreadable = () => problem?.code === 'ConfigUnreadable'

  function report(next: ConfigError): void {
    const isNews = next.message !== problem?.message
    problem = next
    if (isNews) onProblem?.(next)
  }

  function lookAfter(delayMs: number): void {
    timer?.cancel()
    if (isClosed) return
    timer = clock.setTimer(() => void reload().finally(() => lookAfter(pollMs)), delayMs)
  }

  // The directory, not the file: a watch on the file would follow the old one after a swap.
  const watcher = watchQuietly(dirname(path), (name) => {
    if (name === null || name === basename(path) || name.startsWith('..')) lookAfter(settleMs)
  })
  lookAfter(pollMs)

  return {
    current: () => config,
    problem: () => problem,
    reload,
    close() {
      isClosed = true
      timer?.cancel()
      watcher?.close()
    },
  }
}

async function attempt<T>(action: () => Promise<T>): Promise<T | ConfigError> {
  try {
    return await action()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}

/** Without a watch (no inotify handles left, for one) polling still finds every change, only later. */
function watchQuietly(directory: string, onEvent: (name: string | null) => void): FSWatcher | undefined {
  try {
    const watcher = watchDirectory(directory, { persistent: false }, (_event, name) => onEvent(name))
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}
