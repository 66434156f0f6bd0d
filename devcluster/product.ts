import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { install, installYaml, readManifests, renderInstall } from '../src/cli/manifests.ts'
import type { ControlPlane } from './control-plane.ts'
import { DevclusterError } from './error.ts'
import { findFreePorts } from './ports.ts'
import { describeEnd, type ManagedProcess } from './processes.ts'
import { waitUntil } from './wait.ts'

export interface ProductOptions {
  readonly controlPlane: ControlPlane
  /** Further flags of `sandgate serve`. */
  readonly flags?: readonly string[]
}

/** sandgate, installed from its shipped manifests. Its processes run on this machine under its own service account. */
export interface Product {
  /** User name under which it speaks to the API server. */
  readonly username: string
  readonly kubeconfig: string
  /** Of the replica started last. */
  readonly process: ManagedProcess
  /** `http://…` of its probes and metrics. */
  readonly http: string
  /** Starts a process again on the same ports, after the one before has ended. */
  start(): Promise<void>
  /** What it has logged so far. */
  log(): Promise<string>
}

/** Compiled where this file is. */
const main = fileURLToPath(new URL(`../src/main${extname(import.meta.url)}`, import.meta.url))

/**
 * Applies the install, with the webhooks registered by URL, and starts `sandgate serve`; resolves once it is ready.
 * @throws DevclusterError with the end of its log when it is not
 */
export async function installProduct({ controlPlane, flags = [] }: ProductOptions): Promise<Product> {
  const [port = 0, httpPort = 0] = await findFreePorts(2)
  const objects = renderInstall(await readManifests(), { url: `https://127.0.0.1:${port}` })
  const applied = await controlPlane.kubectl(['apply', '-f', '-'], { input: installYaml(objects) })
  if (applied.code !== 0) throw new DevclusterError('RequestFailed', `kubectl apply: ${applied.stderr}`)
  const { namespace, serviceAccount } = install
  const kubeconfig = await controlPlane.serviceAccountKubeconfig(namespace, serviceAccount)
  const http = `http://127.0.0.1:${httpPort}`

  const startServe = async () => {
    const serve = await controlPlane.startProcess('sandgate', process.execPath, [
      main,
      'serve',
      `--kubeconfig=${kubeconfig}`,
      `--namespace=${namespace}`,
      `--port=${port}`,
      `--http-port=${httpPort}`,
      '--cert-host=127.0.0.1',
      '--drain-seconds=0',
      ...flags,
    ])
    const failed = serve.ended.then((how) => describeEnd(serve, how))
    await waitUntil('sandgate', () => isReady(http), { withinMs: 60_000, failed })
    return serve
  }

  let running = await startServe()
  return {
    username: `system:serviceaccount:${namespace}:${serviceAccount}`,
    kubeconfig,
    http,
    get process() {
      return running
    },
    async start() {
      running = await startServe()
    },
    log: () => readFile(running.logFile, 'utf8'),
  }
}

async function isReady(http: string): Promise<boolean> {
  try {
    return (await fetch(`${http}/readyz`)).ok
  } catch {
    return false
  }
}
