import type { AdminApi } from './admin-api.ts'
import { waitUntil } from './wait.ts'

/** Whether, and how, service accounts come into being. */
export interface ServiceAccountFacts {
  /** False without a controller manager: then Pods need none. */
  readonly areMade: boolean
  readonly minorVersion: number
  readonly failed: Promise<Error>
}

const withinMs = 30_000

/** The label that servers from 1.21 keep on every namespace, and that NetworkPolicies and webhooks select by. */
const labelsOf = (name: string): Record<string, string> => ({ 'kubernetes.io/metadata.name': name })

/** Labels the namespaces that the API server makes for itself; whichever it has not made yet is made. */
export async function labelSystemNamespaces(api: AdminApi): Promise<void> {
  const names = ['default', 'kube-system', 'kube-public', 'kube-node-lease']
  await Promise.all(
    names.map((name) =>
      api.send('PATCH', `/api/v1/namespaces/${name}?fieldManager=devcluster&force=true`, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, labels: labelsOf(name) },
      }),
    ),
  )
}

/** Creates a namespace and resolves once Pods can be created in it. */
export async function createNamespace(
  api: AdminApi,
  name: string,
  labels: Readonly<Record<string, string>>,
  accounts: ServiceAccountFacts,
): Promise<void> {
  await api.send('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { ...labelsOf(name), ...labels } },
  })
  await waitForDefaultServiceAccount(api, name, accounts)
}

/**
 * Admission refuses a Pod until its service account is there and, up to 1.23, has a token. Both come from the
 * controller manager, a moment after the namespace.
 */
export async function waitForDefaultServiceAccount(
  api: AdminApi,
  namespace: string,
  { areMade, minorVersion, failed }: ServiceAccountFacts,
): Promise<void> {
  if (!areMade) return
  const isUsable = async (): Promise<boolean> => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts?fieldSelector=metadata.name%3Ddefault`
    const { items } = await api.send<{ items: { secrets?: unknown[] }[] }>('GET', path)
    return items.some((account) => minorVersion >= 24 || (account.secrets ?? []).length > 0)
  }
  await waitUntil(`the service account ${namespace}/default`, isUsable, { withinMs, everyMs: 25, failed })
}
