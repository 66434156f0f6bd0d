import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { DevclusterError } from './error.ts'

export interface KubectlOptions {
  /** Given to standard input, for `-f -`. */
  readonly input?: string
  /** Speak as somebody else than the administrator. */
  readonly kubeconfig?: string
  /** Ends the command. */
  readonly signal?: AbortSignal
}

export interface KubectlResult {
  readonly stdout: string
  readonly stderr: string
  /** Exit code; -1 when a signal ended it. */
  readonly code: number
}

export type Kubectl = (args: readonly string[], options?: KubectlOptions) => Promise<KubectlResult>

/**
 * A runner of the control plane's own kubectl. It resolves whatever the exit code; it rejects when there is no kubectl.
 * Discovery is cached in `cacheFolder`, not in the user's home.
 */
export function createKubectl(binary: string | undefined, kubeconfig: string, cacheFolder: string): Kubectl {
  return async (args, options = {}) => {
    if (binary === undefined) {
      throw new DevclusterError('MissingBinary', 'there is no kubectl beside etcd and kube-apiserver; add it there')
    }
    const flags = [`--kubeconfig=${options.kubeconfig ?? kubeconfig}`, `--cache-dir=${cacheFolder}`]
    const child = spawn(binary, [...flags, ...args], {
      ...(options.signal && { signal: options.signal }),
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    // A command that does not read its input may close it early: not an error.
    child.stdin.on('error', () => undefined)
    child.stdin.end(options.input ?? '')
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number | null]>,
    ])
    return { stdout, stderr, code: code ?? -1 }
  }
}
