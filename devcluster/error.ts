export type DevclusterErrorCode =
  /** A binary that the request needs is not there. */
  | 'MissingBinary'
  /** The binaries could not be built on this machine. */
  | 'BuildFailed'
  /** A process ended that nobody had asked to end. */
  | 'ProcessEnded'
  /** Something did not become ready in time. */
  | 'NotReadyInTime'
  /** The API server refused a request of the control plane's own administration. */
  | 'RequestFailed'

/** Trouble with the local control plane. The message says what to do, or ends with the log of what failed. */
export class DevclusterError extends Error {
  override readonly name = 'DevclusterError'
  readonly code: DevclusterErrorCode

  constructor(code: DevclusterErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
