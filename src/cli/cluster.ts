import type { KubeClient } from '../kube/client.ts'
import { KubeConfigError, loadKubeConfig, type ClusterAccess } from '../kube/config.ts'
import { KubeError } from '../kube/errors.ts'
import { createKubeClient, type KubeClientOptions } from '../kube/rest-client.ts'
import { CommandError, exitCodes } from './command.ts'
import { version } from './version.ts'

/** The flags by which every command that talks to a cluster is told which one. */
export const clusterFlags = { kubeconfig: { type: 'string' }, context: { type: 'string' } } as const

export interface ClusterFlags {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
}

/** A connection to the cluster that the flags name, for as long as a command runs. */
export interface Cluster {
  readonly access: ClusterAccess
  readonly client: KubeClient
}

export interface ClusterWorkOptions extends Pick<KubeClientOptions, 'onRequest'> {
  /** Exit code of a command that the cluster, or its configuration, stops. Default 1. */
  readonly failureCode?: number
}

/**
 * Runs `work` with a client for the cluster, and closes it. What the cluster or its configuration objects to ends the
 * command with one line and `failureCode`.
 */
export async function withCluster<T>(
  { kubeconfig, context }: ClusterFlags,
  work: (cluster: Cluster) => Promise<T>,
  { failureCode = exitCodes.failed, onRequest }: ClusterWorkOptions = {},
): Promise<T> {
  try {
    const access = loadKubeConfig({
      ...(kubeconfig !== undefined && { kubeconfig }),
      ...(context !== undefined && { context }),
    })
    const client = createKubeClient(access, { userAgent: `sandgate/${version}`, ...(onRequest && { onRequest }) })
    try {
      return await work({ access, client })
    } finally {
      await client.close()
    }
  } catch (error) {
    if (!(error instanceof KubeConfigError || error instanceof KubeError)) throw error
    throw new CommandError(error.message, failureCode, error)
  }
}
