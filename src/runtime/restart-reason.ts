import { isKubeError, KubeError } from '../kube/errors.ts'

/** Why a watch was opened anew or a list made again; few and fixed, so fit for a metric's label. */
export type RestartReason =
  'closed' | 'idle' | 'expired' | 'unauthorized' | 'throttled' | 'connection' | 'server-error' | 'error-event' | 'other'

/** An ERROR event: the server gives up on a watch that it had accepted. */
class WatchError extends KubeError {}

/** The error that an ERROR event stands for; its code is `Expired` when the events from here on are gone. */
export function watchError(status: { code?: number; reason?: string; message?: string }): KubeError {
  const isExpired = status.code === 410 || status.reason === 'Expired' || status.reason === 'Gone'
  return new WatchError(isExpired ? 'Expired' : 'ServerError', status.message ?? 'the watch reported an error', {
    status: status.code ?? 0,
    ...(status.reason !== undefined && { reason: status.reason }),
  })
}

/** The reason that `error` is counted under. */
export function restartReason(error: unknown): RestartReason {
  if (isKubeError(error, 'Expired')) return 'expired'
  if (error instanceof WatchError) return 'error-event'
  if (isKubeError(error, 'Unauthorized')) return 'unauthorized'
  if (isKubeError(error, 'TooManyRequests')) return 'throttled'
  if (isKubeError(error, 'Unreachable', 'OutcomeUnknown')) return 'connection'
  if (isKubeError(error, 'ServerError')) return 'server-error'
  return 'other'
}
