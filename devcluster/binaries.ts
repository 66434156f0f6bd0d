import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildBinaries } from './build-binaries.ts'
import { DevclusterError } from './error.ts'

const run = promisify(execFile)

/** The programs of a control plane, as absolute paths. */
export interface Binaries {
  readonly etcd: string
  readonly apiServer: string
  readonly controllerManager?: string
  readonly scheduler?: string
  readonly kubectl?: string
  /** Minor version of the API server: 20 for v1.20.2. */
  readonly minorVersion: number
  readonly origin: 'KUBEBUILDER_ASSETS' | 'cache' | 'built'
}

export interface FindOptions {
  /** Default `process.env`: KUBEBUILDER_ASSETS and XDG_CACHE_HOME are read. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** A script that is given the folder to make; default `build-from-debian.sh`. */
  readonly builder?: string
}

/** What `build-from-debian.sh` builds. */
const cachedVersion = 'v1.20.2-debian12-2'

const fileNames = {
  etcd: 'etcd',
  apiServer: 'kube-apiserver',
  controllerManager: 'kube-controller-manager',
  scheduler: 'kube-scheduler',
  kubectl: 'kubectl',
} as const

/** What goes without each optional binary. */
const consequences = {
  controllerManager: 'no garbage collection, no default service accounts, no volume binding',
  scheduler: 'Pods are not placed on nodes',
  kubectl: 'no kubectl',
} as const

/**
 * Finds the binaries: `KUBEBUILDER_ASSETS`, then the cache (`$XDG_CACHE_HOME` or `~/.cache`,
 * `sandgate/control-plane/<version>`), then a build from Debian's packages, which takes about five minutes.
 * `report` receives progress and what is missing, a line at a time.
 * @throws DevclusterError `MissingBinary` or `BuildFailed`, saying what to do.
 */
export async function findControlPlane(report: (line: string) => void, options: FindOptions = {}): Promise<Binaries> {
  const environment = options.environment ?? process.env
  const assets = environment['KUBEBUILDER_ASSETS']
  if (assets) return inFolder(assets, 'KUBEBUILDER_ASSETS', report)

  const cacheRoot = environment['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  const folder = join(cacheRoot, 'sandgate', 'control-plane', cachedVersion)
  if (await isThere(folder)) return inFolder(folder, 'cache', report)

  const builder = options.builder ?? fileURLToPath(new URL('build-from-debian.sh', import.meta.url))
  await buildBinaries({ folder, builder, report })
  return inFolder(folder, 'built', report)
}

async function inFolder(folder: string, origin: Binaries['origin'], report: (line: string) => void): Promise<Binaries> {
  const remedy =
    origin === 'KUBEBUILDER_ASSETS'
      ? 'set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver, or unset it to build them'
      : `remove ${folder} to build it again`
  const required = async (name: 'etcd' | 'apiServer'): Promise<string> => {
    const path = join(folder, fileNames[name])
    if (await isThere(path, constants.X_OK)) return path
    throw new DevclusterError('MissingBinary', `${folder} (${origin}) has no executable ${fileNames[name]}; ${remedy}`)
  }
  const optional = async <Name extends keyof typeof consequences>(name: Name): Promise<{ [N in Name]?: string }> => {
    const path = join(folder, fileNames[name])
    if (await isThere(path, constants.X_OK)) return { [name]: path } as { [N in Name]?: string }
    report(`${folder} has no ${fileNames[name]}: ${consequences[name]}`)
    return {}
  }

  const apiServer = await required('apiServer')
  return {
    etcd: await required('etcd'),
    apiServer,
    ...(await optional('controllerManager')),
    ...(await optional('scheduler')),
    ...(await optional('kubectl')),
    minorVersion: await minorVersionOf(apiServer),
    origin,
  }
}

/** `Kubernetes v1.20.2` → 20. */
async function minorVersionOf(apiServer: string): Promise<number> {
  const { stdout } = await run(apiServer, ['--version']).catch((cause: unknown) => {
    throw new DevclusterError('MissingBinary', `${apiServer} does not run on this machine`, { cause })
  })
  const minor = /v1\.(\d+)/.exec(stdout)?.[1]
  if (minor === undefined) {
    throw new DevclusterError('MissingBinary', `${apiServer} --version says ${JSON.stringify(stdout)}, not a version`)
  }
  return Number(minor)
}

async function isThere(path: string, mode: number = constants.F_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  )
}
