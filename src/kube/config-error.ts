export type KubeConfigErrorCode =
  /** Nothing says which cluster to use. */
  | 'NoConfig'
  /** A file that the configuration is, or points to, cannot be read. */
  | 'Unreadable'
  /** Not YAML, or not the shape of a kubeconfig. */
  | 'Invalid'
  | 'NoCurrentContext'
  | 'ContextNotFound'
  | 'ClusterNotFound'
  | 'UserNotFound'
  /** Certificates or keys that do not parse or do not belong together. */
  | 'InvalidTls'
  /** Part of a kubeconfig that would be ignored, which it would be dangerous to ignore. */
  | 'Unsupported'
  /** A credential plugin failed. */
  | 'CredentialsFailed'

/** Why a cluster cannot be reached as configured: one line that names the file and what to correct. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError'
  readonly code: KubeConfigErrorCode

  constructor(code: KubeConfigErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}
