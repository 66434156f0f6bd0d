import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { createAdminApi } from './admin-api.ts'
import { type ApiServer, startApiServer } from './api-server.ts'
import { type AuditedRequest, readAuditLog } from './audit.ts'
import type { Binaries } from './binaries.ts'
import { grantControllersEverything } from './controller-rights.ts'
import { createCredentials, kubeconfigText } from './credentials.ts'
import { DevclusterError } from './error.ts'
import {
  apiServerFlags,
  controllerManagerFlags,
  etcdFlags,
  type FlagOptions,
  schedulerFlags,
  serviceAddress,
} from './flags.ts'
import { createKubectl, type Kubectl } from './kubectl.ts'
import { createNamespace, labelSystemNamespaces, waitForDefaultServiceAccount } from './namespaces.ts'
import { findFreePorts } from './ports.ts'
import { createWarden, describeEnd, type ManagedProcess, type Warden } from './processes.ts'
import { defaultParent, writeRunFiles } from './run-folder.ts'

export interface ControlPlaneOptions {
  readonly binaries: Binaries
  readonly log: Logger
  /** Where the run's own folder is made; default `/dev/shm` if there is room, else the system's temporary folder. */
  readonly directory?: string
  /** Writes the log that {@link ControlPlane.requestsOf} reads; default false, since it costs a write per request. */
  readonly audit?: boolean
  /** Each built-in controller speaks as its own service account; default true. */
  readonly serviceAccountCredentials?: boolean
}

/** A running control plane on loopback. It ends, and its folder goes, with the process that started it. */
export interface ControlPlane {
  /** The run's own folder, readable by this user only. */
  readonly directory: string
  readonly url: URL
  readonly minorVersion: number
  /** PEM file of the authority that signed the API server's certificate. */
  readonly caFile: string
  /** Kubeconfig file of an administrator to whom RBAC does not apply. */
  readonly kubeconfig: string
  readonly apiServer: ApiServer
  /** The control plane's own kubectl, as the administrator unless a kubeconfig is given. Never rejects on exit codes. */
  readonly kubectl: Kubectl
  /** Resolves with an error if a process ends that nobody asked to end; otherwise stays pending. */
  readonly failed: Promise<DevclusterError>
  /**
   * Writes a kubeconfig for an existing service account and resolves with its path. The token lasts
   * `expirationSeconds` (default a day; the API server's minimum is 600).
   */
  serviceAccountKubeconfig(
    namespace: string,
    name: string,
    options?: { readonly expirationSeconds?: number },
  ): Promise<string>
  /**
   * Creates a namespace, labelled `kubernetes.io/metadata.name` as servers from 1.21 do by themselves, and resolves
   * once Pods can be created in it.
   */
  createNamespace(name: string, labels?: Readonly<Record<string, string>>): Promise<void>
  /** Starts a further process that ends with the control plane; see {@link Warden.start}. It may end without harm. */
  startProcess(name: string, command: string, args: readonly string[]): Promise<ManagedProcess>
  /**
   * What a user (`system:serviceaccount:<namespace>:<name>`) has asked of the API server, oldest first, from `since`
   * (milliseconds since the epoch) on. Needs the option `audit`.
   */
  requestsOf(user: string, since?: number): Promise<AuditedRequest[]>
  /** Ends every process and removes the folder. Idempotent. */
  stop(): Promise<void>
}

/**
 * Starts etcd, the API server and — where the binaries are there — the controller manager and the scheduler, and
 * resolves once Pods can be created in the namespace `default`: about four seconds on two cores.
 * @throws DevclusterError `ProcessEnded` with the end of its log, or `NotReadyInTime`. Nothing is left behind then.
 */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const warden = await createWarden(options.directory ?? (await defaultParent()))
  try {
    return await startIn(warden, options)
  } catch (error) {
    await warden.dispose()
    throw error
  }
}

async function startIn(warden: Warden, options: ControlPlaneOptions): Promise<ControlPlane> {
  const { binaries, log, audit = false } = options
  const { directory } = warden
  const [[etcdPort = 0, apiServerPort = 0], credentials] = await Promise.all([
    findFreePorts(2),
    createCredentials(serviceAddress),
  ])
  const url = new URL(`https://127.0.0.1:${apiServerPort}`)
  const files = await writeRunFiles(directory, url, credentials)
  const flags: FlagOptions = {
    files,
    minorVersion: binaries.minorVersion,
    apiServerPort,
    etcdPort,
    audit,
    hasControllerManager: binaries.controllerManager !== undefined,
    serviceAccountCredentials: options.serviceAccountCredentials ?? true,
  }

  let stopped: Promise<void> | undefined
  const failed = Promise.withResolvers<DevclusterError>()
  const launch = async (name: string, binary: string, args: readonly string[]): Promise<ManagedProcess> => {
    const started = await warden.start(name, binary, args)
    void started.ended.then(async (how) => {
      if (!started.stopping && !stopped) failed.resolve(await describeEnd(started, how))
    })
    return started
  }

  const api = createAdminApi(url, credentials.caCertificate, credentials.admin)
  const startedAt = Date.now()
  await launch('etcd', binaries.etcd, etcdFlags(flags))
  // It retries until etcd answers.
  const apiServer = await startApiServer(
    api,
    async () => launch('kube-apiserver', binaries.apiServer, apiServerFlags(flags)),
    failed.promise,
  )
  log.info({ url: url.origin, afterMs: Date.now() - startedAt }, 'API server ready')

  if (!flags.serviceAccountCredentials) await grantControllersEverything(api)
  await Promise.all([
    binaries.controllerManager &&
      launch('kube-controller-manager', binaries.controllerManager, controllerManagerFlags(flags)),
    binaries.scheduler && launch('kube-scheduler', binaries.scheduler, schedulerFlags(flags)),
    labelSystemNamespaces(api),
  ])
  const accounts = { areMade: flags.hasControllerManager, minorVersion: binaries.minorVersion, failed: failed.promise }
  await waitForDefaultServiceAccount(api, 'default', accounts)
  log.info({ url: url.origin, afterMs: Date.now() - startedAt }, 'control plane ready')

  return {
    directory,
    url,
    minorVersion: binaries.minorVersion,
    caFile: files.caCertificate,
    kubeconfig: files.adminKubeconfig,
    apiServer,
    kubectl: createKubectl(binaries.kubectl, files.adminKubeconfig, join(directory, 'kubectl-cache')),
    failed: failed.promise,
    async serviceAccountKubeconfig(namespace, name, { expirationSeconds = 86_400 } = {}) {
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds } }
      const { status } = await api.send<{ status: { token: string } }>('POST', path, body)
      const file = join(directory, `${namespace}.${name}.kubeconfig`)
      const { caCertificate } = credentials
      await writeFile(file, kubeconfigText({ url, caCertificate }, { token: status.token }), { mode: 0o600 })
      return file
    },
    startProcess: (name, command, args) => warden.start(name, command, args),
    createNamespace: (name, labels = {}) => createNamespace(api, name, labels, accounts),
    async requestsOf(user, since) {
      if (!audit) throw new DevclusterError('RequestFailed', 'start the control plane with the option audit: true')
      return readAuditLog(files.auditLog, user, since)
    },
    async stop() {
      stopped ??= Promise.all([api.close(), warden.dispose()]).then(() => undefined)
      await stopped
    },
  }
}
