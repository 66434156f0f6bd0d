import type { NetworkPolicy } from '../api/core.ts'
import { nameHash } from '../api/hash.ts'
import type { SandboxTemplate } from '../api/kinds.ts'
import type { NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer } from '../api/schema.ts'
import { annotations, labels } from '../api/vocabulary.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { controllerOf } from '../kube/object.ts'
import { keysPatch, type Keys } from './carried-metadata.ts'
import { sameRules } from './network-rules-form.ts'

export type NetworkPolicySpec = NonNullable<NetworkPolicy['spec']>

/** Beside the template-ref hash, what tells our policies from others; also how an administrator lists them. */
const managedByLabel = 'app.kubernetes.io/managed-by'
const managedBy = 'sandgate'

/** A template as its sandboxes name it: by its name, or `SandboxSet/<name>` for the inline template of a set. */
export interface TemplateIdentity {
  readonly namespace: string
  readonly templateRef: string
}

const setPrefix = 'SandboxSet/'

/** `<template>-network-policy`, or `<set>-set-network-policy`. */
export function networkPolicyName({ templateRef }: TemplateIdentity): string {
  return templateRef.startsWith(setPrefix)
    ? `${templateRef.slice(setPrefix.length)}-set-network-policy`
    : `${templateRef}-network-policy`
}

/**
 * The one NetworkPolicy that all sandboxes of a template share. It has no owner, so that it outlives its template for as
 * long as sandboxes need it (docs/adr/0010-network-policy-outlives-template.md).
 */
export function buildNetworkPolicy(
  identity: TemplateIdentity,
  template: SandboxTemplate,
  config: PolicyConfig,
): NetworkPolicy {
  const rules = template.spec.networkPolicy ?? secureDefault(config)
  return denyingTheRest(identity, rules.ingress ?? [], rules.egress ?? [])
}

/** A policy that lets nothing through: in the place of rules that the API server would not take. */
export function closedNetworkPolicy(identity: TemplateIdentity): NetworkPolicy {
  return denyingTheRest(identity, [], [])
}

/** Whatever the rules, the selector and both policy types are ours: what no rule allows is denied. */
function denyingTheRest(
  identity: TemplateIdentity,
  ingress: NetworkPolicyIngressRule[],
  egress: NetworkPolicyEgressRule[],
): NetworkPolicy {
  const hash = nameHash(identity.templateRef)
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: networkPolicyName(identity),
      namespace: identity.namespace,
      labels: { [managedByLabel]: managedBy, [labels.templateRefHash]: hash },
      annotations: { [annotations.templateRef]: identity.templateRef },
    },
    spec: {
      podSelector: { matchLabels: { [labels.templateRefHash]: hash } },
      policyTypes: ['Ingress', 'Egress'],
      ingress,
      egress,
    },
  }
}

/** Private, shared and link-local ranges, where clusters, neighbours and cloud metadata servers are. */
const blocked = {
  v4: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'],
  v6: ['fc00::/7', 'fe80::/10'],
}

/** In from the router alone; out to the internet alone. */
function secureDefault({ network }: PolicyConfig) {
  const router: NetworkPolicyPeer = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': network.routerNamespace } },
    podSelector: { matchLabels: { app: 'sandbox-router' } },
  }
  const extra = (isV6: boolean) => network.extraBlockedCIDRs.filter((cidr) => cidr.includes(':') === isV6)
  const internet: NetworkPolicyPeer[] = [
    { ipBlock: { cidr: '0.0.0.0/0', except: [...new Set([...blocked.v4, ...extra(false)])] } },
    { ipBlock: { cidr: '::/0', except: [...new Set([...blocked.v6, ...extra(true)])] } },
  ]
  return { ingress: [{ from: [router] }], egress: [{ to: internet }] }
}

/** Which template a policy of ours belongs to; undefined when it bears none of our marks. */
export function identityOf({ metadata }: NetworkPolicy): TemplateIdentity | undefined {
  const templateRef = metadata.annotations?.[annotations.templateRef]
  if (metadata.labels?.[managedByLabel] !== managedBy || templateRef === undefined) return undefined
  const identity = { namespace: metadata.namespace ?? '', templateRef }
  return networkPolicyName(identity) === metadata.name ? identity : undefined
}

/** Every template whose policy could have this one's name: whoever waits for the name has to hear of it too. */
export function identitiesOfPolicy({ metadata }: NetworkPolicy): TemplateIdentity[] {
  const { namespace = '', name = '' } = metadata
  const refs: string[] = []
  if (name.endsWith('-network-policy')) refs.push(name.slice(0, -'-network-policy'.length))
  if (name.endsWith('-set-network-policy')) refs.push(`${setPrefix}${name.slice(0, -'-set-network-policy'.length)}`)
  return refs.map((templateRef) => ({ namespace, templateRef }))
}

/**
 * Whether a policy of the right name is this template's own: it bears our marks, or it selects this template's
 * sandboxes, as one does that had its marks edited away or was made by another implementation of this API. One that
 * something else controls never is.
 */
export function isOwnPolicy(policy: NetworkPolicy, identity: TemplateIdentity): boolean {
  const owner = controllerOf(policy)
  const [kind, name] = identity.templateRef.startsWith(setPrefix)
    ? ['SandboxSet', identity.templateRef.slice(setPrefix.length)]
    : ['SandboxTemplate', identity.templateRef]
  if (owner && (owner.kind !== kind || owner.name !== name)) return false
  const selected = policy.spec?.podSelector.matchLabels?.[labels.templateRefHash]
  return identityOf(policy)?.templateRef === identity.templateRef || selected === nameHash(identity.templateRef)
}

/** The merge patch that puts a policy of ours back in order, or undefined when it means what is wanted. */
export function networkPolicyPatch(present: NetworkPolicy, wanted: NetworkPolicy): object | undefined {
  const { uid, resourceVersion, ownerReferences = [] } = present.metadata
  const marks = {
    labels: keysPatch(present.metadata.labels ?? {}, wanted.metadata.labels ?? {}, []),
    annotations: keysPatch(present.metadata.annotations ?? {}, wanted.metadata.annotations ?? {}, []),
  }
  const isMarked = Object.keys(marks.labels).length === 0 && Object.keys(marks.annotations).length === 0
  const isInOrder = isMarked && ownerReferences.length === 0 && sameRules(present.spec, wanted.spec)
  if (isInOrder || !wanted.spec) return undefined
  const selected: Keys = present.spec?.podSelector.matchLabels ?? {}
  const podSelector = {
    matchLabels: keysPatch(selected, wanted.spec.podSelector.matchLabels ?? {}, Object.keys(selected)),
    matchExpressions: null,
  }
  return {
    metadata: { uid, resourceVersion, ownerReferences: null, ...marks },
    spec: { ...wanted.spec, podSelector },
  }
}
