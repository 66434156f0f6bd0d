import type { V1PersistentVolumeClaimSpec, V1PodSpec, V1PodStatus, V1ServiceSpec } from '@kubernetes/client-node'
import type { KubeObject, Resource } from '../kube/object.ts'
import type { LabelSelector, NetworkPolicyEgressRule, NetworkPolicyIngressRule } from './schema.ts'

/** The built-in kinds that sandgate reads and writes, as they are on the wire. */
type PodCondition = { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }
export type PodStatus = Omit<V1PodStatus, 'conditions' | 'startTime'> & {
  conditions?: PodCondition[]
  startTime?: string
}
export type Pod = KubeObject & { spec?: V1PodSpec; status?: PodStatus }
export type Service = KubeObject & { spec?: V1ServiceSpec }
export type PersistentVolumeClaim = KubeObject & { spec?: V1PersistentVolumeClaimSpec; status?: { phase?: string } }
export type Secret = KubeObject & { type?: string; data?: Record<string, string> }
export type NetworkPolicy = KubeObject & {
  spec?: {
    podSelector: LabelSelector
    policyTypes?: string[]
    ingress?: NetworkPolicyIngressRule[]
    egress?: NetworkPolicyEgressRule[]
  }
}
export type Event = KubeObject & {
  involvedObject: { apiVersion?: string; kind?: string; namespace?: string; name?: string; uid?: string }
  type: 'Normal' | 'Warning'
  reason: string
  message: string
  count?: number
  firstTimestamp?: string
  lastTimestamp?: string
  source?: { component?: string }
}

const core = { group: '', version: 'v1' } as const

export const pods: Resource<Pod> = { ...core, kind: 'Pod', plural: 'pods', namespaced: true }
export const services: Resource<Service> = { ...core, kind: 'Service', plural: 'services', namespaced: true }
export const persistentVolumeClaims: Resource<PersistentVolumeClaim> = {
  ...core,
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
}
export const secrets: Resource<Secret> = { ...core, kind: 'Secret', plural: 'secrets', namespaced: true }
export const events: Resource<Event> = { ...core, kind: 'Event', plural: 'events', namespaced: true }
export const namespaces: Resource = { ...core, kind: 'Namespace', plural: 'namespaces', namespaced: false }
export const networkPolicies: Resource<NetworkPolicy> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
}
