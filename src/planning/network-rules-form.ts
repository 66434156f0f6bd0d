import type { NetworkPolicy } from '../api/core.ts'
import { canonicalJson } from '../api/hash.ts'
import type {
  LabelSelector,
  NetworkPolicyEgressRule,
  NetworkPolicyIngressRule,
  NetworkPolicyPeer,
} from '../api/schema.ts'

type Spec = NetworkPolicy['spec']
type Port = NonNullable<NetworkPolicyIngressRule['ports']>[number]

/**
 * True when two policies allow the same traffic to the same Pods, as far as that shows without solving for it: the order
 * of rules, peers, ports and addresses means nothing, an absent protocol is TCP, an absent list an empty one.
 */
export function sameRules(one: Spec, other: Spec): boolean {
  return canonicalJson(form(one)) === canonicalJson(form(other))
}

function form(spec: Spec) {
  return {
    podSelector: selectorForm(spec?.podSelector),
    policyTypes: unordered(spec?.policyTypes),
    ingress: unordered((spec?.ingress ?? []).map(({ from, ports }) => ruleForm(from, ports))),
    egress: unordered((spec?.egress ?? []).map((rule: NetworkPolicyEgressRule) => ruleForm(rule.to, rule.ports))),
  }
}

function ruleForm(peers: readonly NetworkPolicyPeer[] = [], ports: readonly Port[] = []) {
  return { peers: unordered(peers.map(peerForm)), ports: unordered(ports.map(portForm)) }
}

function peerForm({ ipBlock, namespaceSelector, podSelector }: NetworkPolicyPeer) {
  const isAllPods = namespaceSelector !== undefined && isEmpty(podSelector)
  return {
    // Within chosen namespaces, no Pod selector and an empty one both mean every Pod.
    podSelector: isAllPods ? null : selectorForm(podSelector),
    namespaceSelector: selectorForm(namespaceSelector),
    ipBlock: ipBlock ? { cidr: ipBlock.cidr, except: unordered(ipBlock.except) } : null,
  }
}

function portForm({ port, protocol = 'TCP', endPort }: Port) {
  return { port: port ?? null, protocol, endPort: endPort ?? null }
}

/** Null for an absent selector: for namespaces that is not the same as an empty one, which selects all. */
function selectorForm(selector: LabelSelector | undefined) {
  if (!selector) return null
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values }) => ({
    key,
    operator,
    values: unordered(values),
  }))
  return { matchLabels: selector.matchLabels ?? {}, matchExpressions: unordered(expressions) }
}

function isEmpty(selector: LabelSelector | undefined): boolean {
  return Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0
}

function unordered(items: readonly unknown[] | null = []): string[] {
  return (items ?? []).map(canonicalJson).toSorted()
}
