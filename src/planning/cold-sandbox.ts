import type { Sandbox, SandboxClaim, SandboxTemplate } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { claimAnnotations, claimOwner } from './adoption.ts'
import { buildSandboxFromTemplate } from './blueprint.ts'
import { injectEnv, mergeVolumeClaimTemplates } from './injection.ts'
import { isSandboxSet, type Pool } from './pools.ts'
import { setRevision } from './revision.ts'
import { setLabels } from './set-labels.ts'

/** The sandbox to start for a claim, named like it: what its template says with what the claim adds. Without a proof of origin. */
export function coldSandbox(claim: SandboxClaim, pool: Pool, template: SandboxTemplate, config: PolicyConfig): Sandbox {
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
    labels: { ...ownLabels, ...marksOf(pool, template) },
    podLabels: { ...additionalPodMetadata?.labels, ...ownLabels },
    podAnnotations: additionalPodMetadata?.annotations ?? {},
    annotations: claimAnnotations(claim),
    config,
  })
}

/** Whoever lists what came from a SandboxSet finds cold starts beside the sandboxes that were warm. */
function marksOf(pool: Pool, template: SandboxTemplate): Record<string, string> {
  const revision = isSandboxSet(pool) ? setRevision(pool, template) : undefined
  return isSandboxSet(pool) && revision !== undefined ? setLabels(pool, { revision, isClaimed: true }) : {}
}
