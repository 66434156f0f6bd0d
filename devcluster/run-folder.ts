import { statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Credentials, type KubeconfigUser, kubeconfigText } from './credentials.ts'
import { auditPolicy } from './audit.ts'

/** An empty etcd preallocates 64 MiB of log; a run with ten thousand sandboxes stays below this. */
const roomNeeded = 1024 ** 3

/** Where a run's folder goes by default: memory if there is room, since etcd's writes are what everything waits for. */
export async function defaultParent(): Promise<string> {
  const memory = '/dev/shm'
  const room = await statfs(memory).then(
    (status) => status.bavail * status.bsize,
    () => 0,
  )
  return room >= roomNeeded ? memory : tmpdir()
}

/** The files that the programs are started with. */
export interface RunFiles {
  readonly caCertificate: string
  readonly serverCertificate: string
  readonly serverKey: string
  readonly serviceAccountKey: string
  readonly adminKubeconfig: string
  readonly controllerManagerKubeconfig: string
  readonly schedulerKubeconfig: string
  readonly auditPolicy: string
  readonly auditLog: string
  readonly etcdData: string
}

/** Writes what the programs read into `directory`. */
export async function writeRunFiles(directory: string, url: URL, credentials: Credentials): Promise<RunFiles> {
  const files: RunFiles = {
    caCertificate: join(directory, 'ca.crt'),
    serverCertificate: join(directory, 'apiserver.crt'),
    serverKey: join(directory, 'apiserver.key'),
    serviceAccountKey: join(directory, 'service-account.key'),
    adminKubeconfig: join(directory, 'admin.kubeconfig'),
    controllerManagerKubeconfig: join(directory, 'controller-manager.kubeconfig'),
    schedulerKubeconfig: join(directory, 'scheduler.kubeconfig'),
    auditPolicy: join(directory, 'audit-policy.json'),
    auditLog: join(directory, 'logs', 'audit.jsonl'),
    etcdData: join(directory, 'etcd'),
  }
  const { caCertificate } = credentials
  const kubeconfig = (user: KubeconfigUser): string => kubeconfigText({ url, caCertificate }, user)
  const contents: readonly [string, string][] = [
    [files.caCertificate, caCertificate],
    [files.serverCertificate, credentials.apiServer.certificate],
    [files.serverKey, credentials.apiServer.key],
    [files.serviceAccountKey, credentials.serviceAccountKey],
    [files.adminKubeconfig, kubeconfig({ identity: credentials.admin })],
    [files.controllerManagerKubeconfig, kubeconfig({ identity: credentials.controllerManager })],
    [files.schedulerKubeconfig, kubeconfig({ identity: credentials.scheduler })],
    [files.auditPolicy, JSON.stringify(auditPolicy)],
  ]
  await Promise.all(contents.map(([path, text]) => writeFile(path, text, { mode: 0o600 })))
  return files
}
