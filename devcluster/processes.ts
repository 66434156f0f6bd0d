import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { DevclusterError } from './error.ts'

/** A process of the control plane. */
export interface ManagedProcess {
  readonly name: string
  readonly pid: number
  readonly logFile: string
  /** Resolves once the process is gone, with how it went: `exit code 1`, `signal SIGKILL`. Never rejects. */
  readonly ended: Promise<string>
  /** True from the moment {@link stop} is called: an end that somebody asked for. */
  readonly stopping: boolean
  /** Sends `signal` (default SIGTERM) and resolves once the process is gone; SIGKILL follows after 3 s. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** A folder with processes that die, and that is removed, when this process does — however it dies. */
export interface Warden {
  readonly directory: string
  /** Starts `command`; its output goes to `logs/<name>.log`. A second start under a name appends to the log. */
  start(name: string, command: string, args: readonly string[]): Promise<ManagedProcess>
  /** Kills every process that is left and removes the folder. */
  dispose(): Promise<void>
}

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** Makes a folder in `parent`, guarded by a small process (`warden.sh`) that holds a pipe to this one. */
export async function createWarden(parent: string): Promise<Warden> {
  // Its own session, so that a signal to this process group does not end it first.
  const guard = spawn('sh', [script('warden.sh'), parent], { detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
  const gone = once(guard, 'exit')
  const [directory] = (await Promise.race([
    once(createInterface(guard.stdout), 'line'),
    gone.then(() => {
      throw new DevclusterError('ProcessEnded', `cannot make a folder in ${parent}`)
    }),
  ])) as [string]

  return {
    directory,
    start: (name, command, args) => startIn(directory, name, command, args),
    async dispose() {
      guard.stdin.end()
      await gone
    },
  }
}

async function startIn(
  directory: string,
  name: string,
  command: string,
  args: readonly string[],
): Promise<ManagedProcess> {
  const logFile = join(directory, 'logs', `${name}.log`)
  const log = await open(logFile, 'a')
  const child = spawn('sh', [script('launch.sh'), directory, name, command, ...args], {
    cwd: directory,
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  })
  const ended = endOf(child).then(async (how) => {
    // The kernel gives process ids out again: the warden must not kill whoever has this one next.
    await rm(join(directory, 'running', name), { force: true }).catch(() => undefined)
    return how
  })
  await once(child, 'spawn')
  await log.close()

  let stopping = false
  return {
    name,
    pid: child.pid ?? 0,
    logFile,
    ended,
    get stopping() {
      return stopping
    },
    async stop(signal = 'SIGTERM') {
      stopping = true
      child.kill(signal)
      const timer = setTimeout(() => child.kill('SIGKILL'), 3_000)
      await ended
      clearTimeout(timer)
    },
  }
}

async function endOf(child: ChildProcess): Promise<string> {
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  return signal === null ? `exit code ${code}` : `signal ${signal}`
}

/** The error for a process that ended by itself, with the last lines of its log. */
export async function describeEnd(process: ManagedProcess, how: string): Promise<DevclusterError> {
  return new DevclusterError('ProcessEnded', `${process.name} ended (${how}):\n${await lastLines(process.logFile)}`)
}

/** What gRPC says about every connection to etcd. */
const noise = /(client|clientconn|endpoint|passthrough|balancer_conn_wrappers)\.go:\d+\]/

/** The last lines of a log that tell something; empty when the file is gone. */
async function lastLines(file: string, count = 15): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  // After a fatal error comes a dump of every goroutine, which pushes the error itself out of sight.
  const [beforeDump = ''] = text.split(/^goroutine \d+/m)
  const lines = beforeDump.trimEnd().split('\n')
  return lines
    .filter((line) => !noise.test(line))
    .slice(-count)
    .join('\n')
}
