/** What went wrong with a request, by the meaning a caller acts on. Nothing matches on message text. */
export type KubeErrorCode =
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Invalid'
  | 'BadRequest'
  | 'Forbidden'
  | 'Unauthorized'
  | 'TooManyRequests'
  | 'Expired'
  | 'ServerError'
  /** The request certainly did not reach the server (connection refused, name not resolved, TLS refused). */
  | 'Unreachable'
  /** The request may have been carried out: the reply was lost or did not come in time. */
  | 'OutcomeUnknown'
  /** The caller's signal ended the request. */
  | 'Aborted'

export interface ErrorCause {
  field?: string
  message?: string
  reason?: string
}

export interface KubeErrorDetails {
  /** HTTP status, 0 when no reply came. */
  status: number
  /** The server's own machine-readable reason, e.g. `AlreadyExists`. */
  reason?: string
  causes?: readonly ErrorCause[]
  /** Wait asked for by the server, in milliseconds. */
  retryAfterMs?: number
  cause?: unknown
}

/** A failed API request. `code` says what it means; `cause` keeps what lay beneath. */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  readonly code: KubeErrorCode
  readonly status: number
  readonly reason: string | undefined
  readonly causes: readonly ErrorCause[]
  readonly retryAfterMs: number | undefined

  constructor(code: KubeErrorCode, message: string, details: KubeErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.status = details.status
    this.reason = details.reason
    this.causes = details.causes ?? []
    this.retryAfterMs = details.retryAfterMs
  }
}

/** True when `error` is a {@link KubeError} with one of `codes`. */
export function isKubeError(error: unknown, ...codes: KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && codes.includes(error.code)
}
