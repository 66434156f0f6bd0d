import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Target } from './load.ts'

const program = fileURLToPath(new URL('server.ts', import.meta.url))

export interface ServerChild extends Target {
  readonly pid: number
  stop(): Promise<void>
}

/** Starts one of the servers that are compared; it ends with this process. */
export async function startServerChild(kind: 'gate' | 'bare'): Promise<ServerChild> {
  const child = spawn(process.execPath, [program, kind], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    ended.then(() => {
      throw new Error(`the ${kind} server ended before it listened`)
    }),
  ])) as [string]
  return {
    ...(JSON.parse(line) as Target),
    pid: child.pid ?? 0,
    async stop() {
      child.stdin.end()
      await ended
    },
  }
}
