import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { DevclusterError } from './error.ts'

/** How often a long step says that it is still alive. */
const heartbeatMs = 15_000

/** Keeps an error message readable: the end of what a failed build said. */
const maxErrorLength = 4_000

export interface BuildOptions {
  /** The folder to make. It appears whole or not at all. */
  readonly folder: string
  /** A script that is given `folder` as its argument and prints a line a step. */
  readonly builder: string
  readonly report: (line: string) => void
}

/**
 * Runs the builder, unless another process is running it for the same folder: then waits for that one, and says so.
 * The build is in this process group, so that Ctrl-C ends both; if only this process is killed, the build finishes
 * and the next run finds the result.
 * @throws DevclusterError `BuildFailed` with the end of what the builder said.
 */
export async function buildBinaries({ folder, builder, report }: BuildOptions): Promise<void> {
  const started = Date.now()
  let step = 'starting'
  let complaint = ''

  report(`no control plane in ${folder}: building it, once, in about five minutes`)
  const child = spawn('sh', [fileURLToPath(new URL('build-once.sh', import.meta.url)), folder, builder], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  createInterface(child.stdout).on('line', (line) => {
    step = line
    report(line)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-maxErrorLength)
  })
  const heartbeat = setInterval(() => report(`  ${elapsed(started)} … ${step}`), heartbeatMs)
  const [code, signal] = await closed.finally(() => clearInterval(heartbeat))

  if (code !== 0) {
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`
    throw new DevclusterError(
      'BuildFailed',
      `cannot build the control plane (${how} at: ${step})\n${complaint.trim()}\n` +
        'Instead of building, set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver.',
    )
  }
  report(`built in ${elapsed(started)}`)
}

/** `2 m 05 s` since `started`. */
function elapsed(started: number): string {
  const seconds = Math.round((Date.now() - started) / 1000)
  return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, '0')} s`
}
