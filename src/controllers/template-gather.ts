import { nameHash } from '../api/hash.ts'
import { sandboxSetKind, type SandboxTemplate } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { refKey } from '../kube/object.ts'
import { implicitTemplate } from '../planning/blueprint.ts'
import { networkPolicyName, type TemplateIdentity } from '../planning/network-policy.ts'
import type { NetworkPolicyView } from '../planning/plan-network-policy.ts'
import type { Pool } from '../planning/pools.ts'
import type { ControllerDependencies, Informers } from './dependencies.ts'
import { indexes } from './indexes.ts'

/** Key of a template in the queue: `namespace/name`, or `namespace/SandboxSet/name` for the one inside a set. */
export function templateKey({ namespace, templateRef }: TemplateIdentity): string {
  return `${namespace}/${templateRef}`
}

export function identityOfKey(key: string): TemplateIdentity {
  const at = key.indexOf('/')
  return { namespace: key.slice(0, at), templateRef: key.slice(at + 1) }
}

/** `SandboxSet/<name>`: how the inline template of a set is named. */
export function setTemplateRef(setName: string): string {
  return `${sandboxSetKind.kind}/${setName}`
}

/** What is known about a template and its NetworkPolicy, from the caches. */
export function gatherTemplate(
  identity: TemplateIdentity,
  unusedSince: number | undefined,
  { informers, config }: ControllerDependencies,
): NetworkPolicyView {
  const template = templateOf(identity, informers)
  const name = networkPolicyName(identity)
  const policy = informers.networkPolicies.store.get(refKey({ namespace: identity.namespace, name }))
  // Only a template that is gone makes this worth a walk over the Pods.
  const isInUse = template !== undefined || (policy !== undefined && hasPods(identity, informers))
  return { identity, template, policy, isInUse, unusedSince, config: config() }
}

/** The pools whose sandboxes come from this template. */
export function poolsOf({ namespace, templateRef }: TemplateIdentity, { warmPools, sets }: Informers): Pool[] {
  const setName = nameOfSet(templateRef)
  if (setName !== undefined) {
    const set = sets.store.get(refKey({ namespace, name: setName }))
    return set ? [set] : []
  }
  const key = refKey({ namespace, name: templateRef })
  return [...warmPools.store.indexed(indexes.template, key), ...sets.store.indexed(indexes.template, key)]
}

/** The template of this identity, unless it is gone, going, or no longer inside its set. */
export function templateOf(
  { namespace, templateRef }: TemplateIdentity,
  informers: Informers,
): SandboxTemplate | undefined {
  const setName = nameOfSet(templateRef)
  if (setName === undefined) {
    const template = informers.templates.store.get(refKey({ namespace, name: templateRef }))
    return template?.metadata.deletionTimestamp === undefined ? template : undefined
  }
  const set = informers.sets.store.get(refKey({ namespace, name: setName }))
  if (!set || set.metadata.deletionTimestamp !== undefined || set.spec.templateRef) return undefined
  return implicitTemplate(set)
}

/** A Pod outlives its Sandbox by its grace period, and runs until then. */
function hasPods({ namespace, templateRef }: TemplateIdentity, { sandboxes, pods }: Informers): boolean {
  const hash = nameHash(templateRef)
  if (sandboxes.store.indexed(indexes.templateRefHash, `${namespace}/${hash}`).length > 0) return true
  for (const { metadata } of pods.store.values()) {
    if (metadata.namespace === namespace && metadata.labels?.[labels.templateRefHash] === hash) return true
  }
  return false
}

function nameOfSet(templateRef: string): string | undefined {
  const prefix = setTemplateRef('')
  return templateRef.startsWith(prefix) ? templateRef.slice(prefix.length) : undefined
}
