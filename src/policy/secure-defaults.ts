import type { V1PodSpec } from '@kubernetes/client-node'
import type { SandboxTemplateSpec } from '../api/kinds.ts'
import type { PolicyConfig } from '../config/schema.ts'

export interface SecureDefaultsOptions {
  /** The template that the sandbox comes from; undefined for a stand-alone Sandbox. */
  readonly template: Pick<SandboxTemplateSpec, 'networkPolicyManagement' | 'networkPolicy'> | undefined
  readonly config: PolicyConfig
}

/** Public resolvers: the cluster's own are blocked by the default NetworkPolicy, and would list its services. */
const publicNameservers = ['8.8.8.8', '1.1.1.1']

/**
 * The PodSpec with secure values where the author left a field unset; fields that are set stay as they are.
 * Returns a new spec and leaves its argument alone. Applying it twice changes nothing more.
 */
export function applySecureDefaults(spec: V1PodSpec, { template, config }: SecureDefaultsOptions): V1PodSpec {
  const result = structuredClone(spec)
  result.automountServiceAccountToken ??= false
  if (config.sandboxes.enableServiceLinksDefault) result.enableServiceLinks ??= false
  if (config.sandboxes.seccompDefault && result.os?.name !== 'windows') {
    // The API server refuses a seccomp profile on a Windows Pod.
    result.securityContext = { ...result.securityContext }
    result.securityContext.seccompProfile ??= { type: 'RuntimeDefault' }
  }
  if (template && isNetworkClosed(template) && !result.dnsPolicy) {
    result.dnsPolicy = 'None'
    result.dnsConfig = { ...result.dnsConfig }
    if (!result.dnsConfig.nameservers?.length) result.dnsConfig.nameservers = [...publicNameservers]
  }
  return result
}

/** Whether the sandboxes of a template get the default NetworkPolicy, with no rule of the author's. */
export function isNetworkClosed(template: NonNullable<SecureDefaultsOptions['template']>): boolean {
  return (template.networkPolicyManagement ?? 'Managed') === 'Managed' && !template.networkPolicy
}
