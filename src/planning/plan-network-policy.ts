import type { NetworkPolicy } from '../api/core.ts'
import type { SandboxTemplate } from '../api/kinds.ts'
import type { PolicyConfig } from '../config/schema.ts'
import {
  buildNetworkPolicy,
  isOwnPolicy,
  networkPolicyName,
  networkPolicyPatch,
  type TemplateIdentity,
} from './network-policy.ts'

/** All that a decision about the NetworkPolicy of one template rests on. */
export interface NetworkPolicyView {
  readonly identity: TemplateIdentity
  /** The template, or the implicit one of a set; undefined when it is gone or being deleted. */
  readonly template: SandboxTemplate | undefined
  /** Whichever NetworkPolicy holds the name. */
  readonly policy: NetworkPolicy | undefined
  /** Sandboxes or Pods that the policy protects are there. */
  readonly isInUse: boolean
  /** Since when, in milliseconds, neither a template nor a sandbox has needed it. */
  readonly unusedSince: number | undefined
  readonly config: PolicyConfig
}

export type NetworkPolicyPlan =
  | { readonly kind: 'keep' }
  | { readonly kind: 'create'; readonly object: NetworkPolicy }
  /** `patch` is a merge patch. */
  | { readonly kind: 'repair'; readonly object: NetworkPolicy; readonly patch: object }
  | { readonly kind: 'delete'; readonly object: NetworkPolicy; readonly because: 'unmanaged' | 'unused' }
  /** Someone else's policy has the name: it stays, and whoever uses the template must know. */
  | { readonly kind: 'taken'; readonly message: string }
  | { readonly kind: 'wait'; readonly forMs: number; readonly isUnused: boolean }

/**
 * How long a policy stays after its last use is seen to be over. A claim may just be making a sandbox from a template
 * that its cache still shows: a watch can lag 10 s, and a write take 3 s.
 */
const graceMs = 15_000
/** How often to see whether the last sandbox of a deleted template is gone. */
const inUseRecheckMs = 15_000

/**
 * The decision ladder of a template's NetworkPolicy. The first that holds decides.
 *
 * 1. Someone else's policy has the name: leave it, and say so if the template wants one of its own.
 * 2. The template is gone: keep the policy while sandboxes need it and a grace time beyond, then delete it.
 * 3. Unmanaged: delete ours.
 * 4. Managed: create it, or put it back in order.
 */
export function planNetworkPolicy(view: NetworkPolicyView, now: number): NetworkPolicyPlan {
  const { identity, template, policy, config } = view
  const isManaged = template !== undefined && template.spec.networkPolicyManagement !== 'Unmanaged'
  if (policy && !isOwnPolicy(policy, identity)) {
    return isManaged ? { kind: 'taken', message: takenMessage(identity) } : { kind: 'keep' } // 1
  }
  if (!template) return policy ? planOrphaned(policy, view, now) : { kind: 'keep' } // 2
  if (!isManaged) return policy ? { kind: 'delete', object: policy, because: 'unmanaged' } : { kind: 'keep' } // 3
  const wanted = buildNetworkPolicy(identity, template, config) // 4
  if (!policy) return { kind: 'create', object: wanted }
  const patch = networkPolicyPatch(policy, wanted)
  return patch ? { kind: 'repair', object: policy, patch } : { kind: 'keep' }
}

function planOrphaned(policy: NetworkPolicy, view: NetworkPolicyView, now: number): NetworkPolicyPlan {
  if (view.isInUse) return { kind: 'wait', forMs: inUseRecheckMs, isUnused: false }
  const unusedMs = view.unusedSince === undefined ? 0 : now - view.unusedSince
  if (unusedMs < graceMs) return { kind: 'wait', forMs: graceMs - unusedMs, isUnused: true }
  return { kind: 'delete', object: policy, because: 'unused' }
}

function takenMessage(identity: TemplateIdentity): string {
  return (
    `NetworkPolicy ${networkPolicyName(identity)} exists and is not sandgate's, so it was left as it is and the ` +
    'sandboxes of this template have no policy of their own. Rename or delete it.'
  )
}
