import type { Sandbox, SandboxClaim, SandboxTemplate } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { claimAnnotations, claimOwner } from './adoption.ts'
import { buildSandboxFromTemplate } from './blueprint.ts'
import { injectEnv, mergeVolumeClaimTemplates } from './injection.ts'

/** The sandbox to start for a claim, named like it: what its template says with what the claim adds. Without a proof of origin. */
export function coldSandbox(claim: SandboxClaim, template: SandboxTemplate, config: PolicyConfig): Sandbox {
  const { namespace = '', name = '', uid = '' } = claim.metadata
  const createdBy = claim.metadata.labels?.[labels.createdBy]
  const ownLabels = { [labels.claimUid]: uid, ...(createdBy !== undefined && { [labels.createdBy]: createdBy }) }
  const { env = [], volumeClaimTemplates = [], additionalPodMetadata } = claim.spec
  const { podTemplate } = template.spec
  const volumes = mergeVolumeClaimTemplates(template.spec.volumeClaimTemplates ?? [], volumeClaimTemplates)
  const injected: SandboxTemplate = {
    ...template,
    spec: {
      ...template.spec,
      podTemplate: { ...podTemplate, spec: injectEnv(podTemplate.spec, env) },
      ...(volumes.length > 0 && { volumeClaimTemplates: volumes }),
    },
  }
  return buildSandboxFromTemplate(injected, {
    name,
    namespace,
    owner: claimOwner(claim),
    launchType: 'cold',
    labels: ownLabels,
    podLabels: { ...additionalPodMetadata?.labels, ...ownLabels },
    podAnnotations: additionalPodMetadata?.annotations ?? {},
    annotations: claimAnnotations(claim),
    config,
  })
}
