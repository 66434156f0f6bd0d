import { KubeError } from './errors.ts'
import type { ErrorCause, KubeErrorCode } from './errors.ts'
import { CutoffError } from './cutoff.ts'
import { ExchangeError } from './exchange.ts'
import type { Reply } from './exchange.ts'

/** The `Status` object that the API server answers failures with; a proxy on the way answers with anything. */
interface Status {
  message?: string
  reason?: string
  details?: { causes?: ErrorCause[]; retryAfterSeconds?: number }
}

/** What a request was, as far as its failure is concerned. */
export interface Attempt {
  /** For people: `patch sandboxes default/a`. */
  readonly what: string
  /** True when the request, carried out, leaves something changed. */
  readonly isWrite: boolean
}

/** The error that a reply with a status of 300 or more stands for. */
export function errorOfReply(attempt: Attempt, reply: Reply): KubeError {
  const status = parseStatus(reply.body)
  const reason = status.reason || undefined
  const code = codeOf(reply.status, reason, attempt.isWrite)
  const retryAfterMs = retryAfter(reply.headers['retry-after'], status)
  const explanation = oneLine(status.message ?? 'the reply explains nothing')
  return new KubeError(code, `${attempt.what}: ${code} (${reply.status}): ${explanation}`, {
    status: reply.status,
    ...(reason !== undefined && { reason }),
    ...(status.details?.causes && { causes: status.details.causes }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

/**
 * The error for a request that got no whole reply. A read whose reply was lost is `OutcomeUnknown` like a write: the
 * code says what is known about the request, and for a read the answer happens to be to ask again.
 */
export function errorOfFailure(attempt: Attempt, failure: unknown): KubeError {
  if (failure instanceof KubeError) return failure
  const isExchange = failure instanceof ExchangeError
  const reason = isExchange || failure instanceof CutoffError ? failure.reason : 'failed'
  const wasSent = isExchange && failure.wasSent
  const code = reason === 'aborted' ? 'Aborted' : wasSent ? 'OutcomeUnknown' : 'Unreachable'
  const cause = isExchange ? failure.cause : failure
  return new KubeError(code, `${attempt.what}: ${code}: ${explain(reason, wasSent, cause)}`, {
    status: 0,
    ...(cause !== undefined && { cause }),
  })
}

/**
 * A server error answers a write definitely only when the API server itself says what stopped it (`InternalError` of a
 * failed webhook, `ServiceUnavailable` of a server that shuts down). Open is:
 *  - `Timeout` (504) and `ServerTimeout` (500): the server stopped waiting for its storage, which may have committed;
 *  - no reason: storage errors that the server has no name for (`etcdserver: request timed out`, a leader change), and
 *    whatever a proxy between answers when it lost the server (502, 504, a plain 500 or 503).
 * The price of calling a definite failure open is one repeated write; the other mistake can make two of something.
 */
function codeOf(status: number, reason: string | undefined, isWrite: boolean): KubeErrorCode {
  switch (status) {
    case 401:
      return 'Unauthorized'
    case 403:
      return 'Forbidden'
    case 404:
      return 'NotFound'
    case 409:
      return reason === 'AlreadyExists' ? 'AlreadyExists' : 'Conflict'
    case 410:
      return 'Expired'
    case 422:
      return 'Invalid'
    case 429:
      return 'TooManyRequests'
    default:
      // Of the others below 500 (405, 406, 413, 415) all blame the request: to repeat it changes nothing.
      if (status >= 400 && status < 500) return 'BadRequest'
      return status >= 500 && isWrite && isOpen(status, reason) ? 'OutcomeUnknown' : 'ServerError'
  }
}

function isOpen(status: number, reason: string | undefined): boolean {
  return status === 504 || reason === undefined || reason === 'Timeout' || reason === 'ServerTimeout'
}

function parseStatus(body: Buffer): Status {
  const text = body.toString()
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null) return parsed
  } catch {
    // Not from the API server, or cut short by it; the text is the best explanation there is.
  }
  return text === '' ? {} : { message: text }
}

/** In seconds on the wire; the HTTP date that the header may also hold is not something an API server sends. */
function retryAfter(header: string | undefined, status: Status): number | undefined {
  const seconds = Number(header ?? status.details?.retryAfterSeconds)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined
}

function explain(reason: CutoffError['reason'] | 'failed', wasSent: boolean, cause: unknown): string {
  const when = wasSent ? 'after the request was sent' : 'before the request was sent'
  switch (reason) {
    case 'aborted':
      return `ended by the caller ${when}`
    case 'deadline':
      return wasSent ? 'no reply in time' : 'no connection in time'
    case 'failed':
      return `the connection failed ${when} (${oneLine(nameOf(cause))})`
    default:
      return reason satisfies never
  }
}

/** An error of several addresses that were tried has a code but no message. */
function nameOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'no reason given'
  return cause.message || (cause as NodeJS.ErrnoException).code || cause.name
}

const explanationLimit = 500

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > explanationLimit ? `${line.slice(0, explanationLimit)}…` : line
}
