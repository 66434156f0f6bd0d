import { existsSync, readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { delimiter, join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { systemClock } from '../runtime/clock.ts'
import type { Clock } from '../runtime/clock.ts'
import { KubeConfigError } from './config-error.ts'
import { CredentialSource, validateTls } from './credentials.ts'
import type { Credentials } from './credentials.ts'
import { readKubeconfigs } from './kubeconfig-file.ts'
import type { LoadedConfig } from './kubeconfig-file.ts'

export { KubeConfigError } from './config-error.ts'
export type { KubeConfigErrorCode } from './config-error.ts'
export type { Credentials, TlsMaterial } from './credentials.ts'

/** One cluster and the identity to use there. */
export interface ClusterAccess {
  readonly server: URL
  /** The context's, or the pod's own. */
  readonly namespace?: string
  readonly proxyUrl?: string
  /**
   * The headers and TLS material to use now; cheap to call for every request. `refused` are credentials that the server
   * answered with 401: others are read, if they have not been already.
   */
  credentials(refused?: Credentials): Promise<Credentials>
}

export interface LoadKubeConfigOptions {
  /** Path of the one file to use. */
  kubeconfig?: string
  /** Instead of the file's current context. */
  context?: string
  env?: Readonly<Record<string, string | undefined>>
  clock?: Clock
  /** Where a pod finds its token, CA and namespace. */
  serviceAccountDirectory?: string
}

/**
 * Finds the cluster to talk to: the file named by `kubeconfig`, else those in KUBECONFIG, else the pod's service
 * account, else ~/.kube/config. A `context` names a file's, so it passes over the service account.
 *
 * @throws {KubeConfigError} naming the file and the problem in one line
 */
export function loadKubeConfig(options: LoadKubeConfigOptions = {}): ClusterAccess {
  const load = () => readConfig(options)
  const loaded = load()
  const context = loaded.config.getContextObject(loaded.config.currentContext)
  const cluster = loaded.config.getCurrentCluster()!
  validateTls(loaded)
  const source = new CredentialSource(loaded, load, options.clock ?? systemClock)
  return {
    server: serverUrl(cluster.server, loaded.origin),
    ...(context?.namespace && { namespace: context.namespace }),
    ...(cluster.proxyUrl && { proxyUrl: cluster.proxyUrl }),
    credentials: (refused) => source.credentials(refused),
  }
}

function readConfig(options: LoadKubeConfigOptions): LoadedConfig {
  const env = options.env ?? process.env
  if (options.kubeconfig !== undefined) return readKubeconfigs([options.kubeconfig], options.context)

  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '')
  // As for kubectl, a list may name files that are not there.
  const present = listed.filter((path) => existsSync(path))
  if (present.length > 0) return readKubeconfigs(present, options.context)
  if (listed.length > 0) {
    throw new KubeConfigError('Unreadable', `KUBECONFIG: ${listed.join(', ')}: no such file`)
  }

  if (options.context === undefined) {
    const inCluster = serviceAccount(env, options.serviceAccountDirectory)
    if (inCluster) return inCluster
  }

  const ownFile = env['HOME'] && join(env['HOME'], '.kube', 'config')
  if (ownFile && existsSync(ownFile)) return readKubeconfigs([ownFile], options.context)
  throw new KubeConfigError(
    'NoConfig',
    'no cluster configured: not in a pod with a service account, KUBECONFIG is not set, and there is no ~/.kube/config; give a file with --kubeconfig',
  )
}

/** The identity that Kubernetes mounts into a pod, if this is one. */
function serviceAccount(
  env: Readonly<Record<string, string | undefined>>,
  directory = '/var/run/secrets/kubernetes.io/serviceaccount',
): LoadedConfig | undefined {
  const host = env['KUBERNETES_SERVICE_HOST']
  const tokenFile = join(directory, 'token')
  if (!host || !existsSync(tokenFile)) return undefined
  const authority = `${isIPv6(host) ? `[${host}]` : host}:${env['KUBERNETES_SERVICE_PORT'] ?? '443'}`
  const config = new KubeConfig()
  const name = 'in-cluster'
  const namespaceFile = join(directory, 'namespace')
  const namespace = existsSync(namespaceFile) ? readFileSync(namespaceFile, 'utf8').trim() : undefined
  config.loadFromOptions({
    clusters: [{ name, server: `https://${authority}`, caFile: join(directory, 'ca.crt'), skipTLSVerify: false }],
    users: [{ name }],
    contexts: [{ name, cluster: name, user: name, namespace }],
    currentContext: name,
  })
  return { config, origin: directory, tokenFile }
}

function serverUrl(server: string, origin: string): URL {
  const url = URL.parse(server)
  if (url && (url.protocol === 'https:' || url.protocol === 'http:')) return url
  throw new KubeConfigError('Invalid', `${origin}: server ${JSON.stringify(server)} is not an http or https URL`)
}
