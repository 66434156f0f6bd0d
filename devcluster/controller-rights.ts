import type { AdminApi } from './admin-api.ts'

/**
 * Lets the controller manager do everything as the one user that it then is. The API server has a role for each of its
 * controllers' accounts, but none for all of them together; who runs it so has to grant it, as the flag's documentation says.
 */
export async function grantControllersEverything(api: AdminApi): Promise<void> {
  const group = 'rbac.authorization.k8s.io'
  await api.send('POST', `/apis/${group}/v1/clusterrolebindings`, {
    metadata: { name: 'devcluster:kube-controller-manager' },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: group, kind: 'User', name: 'system:kube-controller-manager' }],
  })
}
