import type { PersistentVolumeClaim, Pod, Service } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'

/** What a Sandbox needs under a name of its own. */
export type PartKind = 'Pod' | 'Service' | 'PersistentVolumeClaim'

/** Takes over an object that was offered, by making the Sandbox its controller. */
export type AdoptStep = {
  readonly kind: 'adopt'
  readonly part: PartKind
  readonly object: Pod | Service | PersistentVolumeClaim
  readonly patch: object
}

/** One write. They are carried out in their order; a failure ends the pass. */
export type SandboxStep =
  | { readonly kind: 'createVolumeClaim'; readonly object: PersistentVolumeClaim }
  | { readonly kind: 'createService'; readonly object: Service }
  | { readonly kind: 'createPod'; readonly object: Pod }
  | AdoptStep
  /** Every `patch` is a merge patch. */
  | { readonly kind: 'patchService'; readonly object: Service; readonly patch: object }
  | { readonly kind: 'patchPod'; readonly object: Pod; readonly patch: object }
  | { readonly kind: 'deletePod'; readonly object: Pod; readonly because: string }
  | { readonly kind: 'deleteService'; readonly object: Service }
  | { readonly kind: 'deleteSandbox'; readonly object: Sandbox }

/** What one rung of the ladder found: writes to make, and sentences about what keeps the Sandbox from being ready. */
export interface Part {
  readonly steps: readonly SandboxStep[]
  readonly missing: readonly string[]
  /** A write was held back that may wait. */
  readonly defers?: boolean
  /** When to look again though nothing has changed. */
  readonly recheckMs?: number
}

export function isCreate({ kind }: SandboxStep): boolean {
  return kind === 'createPod' || kind === 'createService' || kind === 'createVolumeClaim'
}
