import { isKubeError } from '../kube/errors.ts'

/**
 * The server's words about an exhausted ResourceQuota, which name the quota; undefined for any other error.
 *
 * The quota plugin answers with the same status and reason as missing permissions do and gives no causes, so its
 * fixed phrase is the only thing that tells the two apart.
 */
export function exceededQuota(error: unknown): string | undefined {
  if (!isKubeError(error, 'Forbidden')) return undefined
  const at = error.message.indexOf('exceeded quota: ')
  return at === -1 ? undefined : error.message.slice(at)
}
