import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export interface Options {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export interface Ended {
  /** -1 when a signal ended it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** The real command, in a process of its own, which has no cluster but what `env` and `args` name. */
function launch(args: readonly string[], { env = {}, cwd }: Options) {
  return spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
}

/** Runs the command to its end. */
export async function sandgate(args: readonly string[], options: Options = {}): Promise<Ended> {
  const child = launch(args, options)
  // A command that does not read its input may end before it is written.
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return { code: code ?? -1, stdout, stderr }
}

/** A command that stays. */
export interface Running {
  /** Resolves with the output once `pattern` matches it; rejects when the command ends before. */
  sees(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<string>
  output(stream: 'stdout' | 'stderr'): string
  /** Resolves with the exit code, -1 for a signal. */
  stop(signal?: NodeJS.Signals): Promise<number>
  readonly ended: Promise<number>
}

export function startSandgate(
  t: { teardown(stop: () => unknown): void },
  args: readonly string[],
  options: Options = {},
): Running {
  const child = launch(args, options)
  child.stdin.end()
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      output[name] += chunk
    })
  }
  const ended = once(child, 'close').then(([code]) => (code as number | null) ?? -1)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    output: (stream) => output[stream],
    ended,
    async sees(stream, pattern) {
      let isOver = false
      void ended.then(() => (isOver = true))
      while (!pattern.test(output[stream])) {
        if (isOver) throw new Error(`ended without ${String(pattern)} on ${stream}:\n${output.stdout}${output.stderr}`)
        await Promise.race([once(child[stream], 'data'), ended])
      }
      return output[stream]
    },
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      return await ended
    },
  }
}

/** A port that something listens on until the test ends. */
export async function takenPort(t: { teardown(stop: () => unknown): void }): Promise<number> {
  const server = createServer().listen(0, '::')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** A port that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** A kubeconfig for a server, without credentials. */
export function kubeconfigFor(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'it', cluster: { server } }],
    users: [{ name: 'it', user: {} }],
    contexts: [{ name: 'it', context: { cluster: 'it', user: 'it' } }],
    'current-context': 'it',
  })
}
