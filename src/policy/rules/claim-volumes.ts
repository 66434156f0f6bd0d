import { claimReasons } from '../../api/vocabulary.ts'
import { blueprintOf, listOf } from '../blueprint-view.ts'
import type { Rule } from '../rule.ts'
import { poolOf, templateOf } from './claim-facts.ts'
import { volumeNameViolations } from './template-volumes.ts'

const shared = {
  kinds: ['SandboxClaim'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
  claimReason: claimReasons.volumeClaimTemplatesError,
} as const

/** Storage costs money and carries data; the template's author decides whether a claim may bring its own. */
export const volumePolicy: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/volume-policy',
  refuses: 'Volume claim templates in a claim whose template says Disallowed, which is what it says by default.',
  why: 'Volumes bring storage and data into a sandbox whose author has not agreed to that.',
  relax: 'Set volumeClaimTemplatesPolicy: Allowed (or Overrides) on the template.',
  factsAbout: poolOf,
  check({ object }, context) {
    const template = templateOf(context)
    if (!template || !object.spec.volumeClaimTemplates?.length) return []
    if ((template.spec.volumeClaimTemplatesPolicy ?? 'Disallowed') !== 'Disallowed') return []
    const message =
      `template ${template.metadata.name} lets no claim bring volumes. ` +
      'Remove volumeClaimTemplates, or set volumeClaimTemplatesPolicy: Allowed on the template.'
    return [{ field: 'spec.volumeClaimTemplates', message }]
  },
}

/**
 * Allowed means "may add". A claim's volume takes the place of a Pod volume of its name, which is the only way for it to
 * be mounted; so an emptyDir of that name is an invitation, anything else (a Secret, a ConfigMap, a claim) is content.
 */
export const volumeOverride: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/volume-override',
  refuses: 'Under the policy Allowed, a volume name that the template already uses (an emptyDir may be replaced).',
  why: 'Allowed lets a claim add volumes, not replace the data that the template brings.',
  relax: 'Set volumeClaimTemplatesPolicy: Overrides on the template.',
  factsAbout: poolOf,
  check({ object }, context) {
    const template = templateOf(context)
    if (!template || template.spec.volumeClaimTemplatesPolicy !== 'Allowed') return []
    const { volumeClaimTemplates, podSpec } = blueprintOf(template)
    const taken = new Set<string | undefined>([
      ...volumeClaimTemplates.map(({ metadata }) => metadata.name),
      ...listOf(podSpec?.volumes)
        .filter((volume) => !volume.emptyDir)
        .map(({ name }) => name),
    ])
    return listOf(object.spec.volumeClaimTemplates).flatMap(({ metadata }, i) => {
      if (!taken.has(metadata.name)) return []
      const message =
        `volume ${metadata.name} belongs to template ${template.metadata.name}; policy Allowed lets a claim add volumes, ` +
        'not replace them. Rename it, or set volumeClaimTemplatesPolicy: Overrides on the template.'
      return [{ field: `spec.volumeClaimTemplates[${i}].metadata.name`, message }]
    })
  },
}

/** Names become Pod volumes and parts of PersistentVolumeClaim names. */
export const volumeNames: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/volume-names',
  refuses: 'Volume claim templates whose name is empty, invalid, or used twice.',
  why: 'The name becomes that of a Pod volume, so the sandbox could not be created.',
  relax: 'Give each volume a name of its own: lower-case letters, digits and "-", 63 at most.',
  check: ({ object }) => volumeNameViolations(listOf(object.spec.volumeClaimTemplates)),
}

/** A claim asks for storage. Naming storage that exists would hand it data that belongs to someone. */
export const volumeSource: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/volume-source',
  refuses: 'A volume that names existing data: volumeName, selector, dataSource or dataSourceRef.',
  why: 'The claim would be given a volume, snapshot or clone of data that may not be its own.',
  relax: 'List the field under admission.allowedVolumeSources in the configuration.',
  check({ object }, { config }) {
    const sources = (['volumeName', 'selector', 'dataSource', 'dataSourceRef'] as const).filter(
      (source) => !config.admission.allowedVolumeSources.includes(source),
    )
    return listOf(object.spec.volumeClaimTemplates).flatMap(({ metadata, spec }, i) =>
      sources
        .filter((source) => spec?.[source] !== undefined && spec[source] !== null)
        .map((source) => ({
          field: `spec.volumeClaimTemplates[${i}].spec.${source}`,
          message:
            `volume ${metadata.name} may not name existing data (${JSON.stringify(spec[source])}). ` +
            `Remove ${source}, or have it listed under admission.allowedVolumeSources.`,
        })),
    )
  },
}
