import { labels } from '../../api/vocabulary.ts'
import { controllerOf } from '../../kube/object.ts'
import { differ } from '../changed-fields.ts'
import { isDnsLabel, nameOf } from '../names.ts'
import type { Rule } from '../rule.ts'

const shared = {
  kinds: ['Sandbox'],
  on: ['CREATE', 'UPDATE'],
  integrity: false,
  mode: 'enforce',
} as const

/** Who holds a claim may suspend its sandbox and shorten its life, not turn it into another one. */
export const claimedSpec: Rule<'Sandbox'> = {
  ...shared,
  id: 'sandbox/claimed-spec',
  on: ['UPDATE'],
  judges: 'change',
  refuses: 'A user changing podTemplate, volumeClaimTemplates or service of a claimed Sandbox.',
  why: 'The sandbox would no longer be what the template and its policies say.',
  relax: 'Create a claim on another pool; operatingMode, shutdownTime and shutdownPolicy stay free.',
  check({ object, oldObject, actor }) {
    if (!oldObject || actor === 'controller' || actor === 'trusted') return []
    const isClaimed =
      controllerOf(oldObject)?.kind === 'SandboxClaim' || oldObject.metadata.labels?.[labels.claimUid] !== undefined
    if (!isClaimed) return []
    return (['podTemplate', 'volumeClaimTemplates', 'service'] as const)
      .filter((field) => differ(oldObject.spec[field], object.spec[field]))
      .map((field) => ({
        field: `spec.${field}`,
        message:
          'a claimed Sandbox keeps what it was made of. Create another claim; operatingMode and shutdownTime may change.',
      }))
  },
}

/** A volume that changed would not be the one whose data the sandbox has. */
export const volumesImmutable: Rule<'Sandbox'> = {
  ...shared,
  id: 'sandbox/volumes-immutable',
  on: ['UPDATE'],
  judges: 'change',
  refuses: 'Changing volumeClaimTemplates of a Sandbox.',
  why: 'Its volumes exist already, and a PersistentVolumeClaim cannot follow the change.',
  relax: 'Create another Sandbox.',
  check({ object, oldObject }) {
    if (!oldObject) return []
    const { volumeClaimTemplates: was = [] } = oldObject.spec
    const { volumeClaimTemplates: is = [] } = object.spec
    if (!differ(was, is)) return []
    const message = 'the volumes exist already and cannot follow a change. Create another Sandbox.'
    return [{ field: 'spec.volumeClaimTemplates', message }]
  },
}

/** The Pod, its host name and the Service are named like the Sandbox; older servers want a Service to begin with a letter. */
export const sandboxName: Rule<'Sandbox'> = {
  ...shared,
  id: 'sandbox/name',
  judges: 'state',
  refuses: 'A name that is longer than 63 characters or no DNS label, or with service: true begins with a digit.',
  why: 'The Pod, its host name and the Service are named like the Sandbox.',
  relax: 'Choose a name of lower-case letters, digits and "-" that begins with a letter.',
  check({ object }) {
    const name = nameOf(object.metadata)
    if (!isDnsLabel(name)) {
      const message = `"${name}" cannot name a Pod and its host. Use lower-case letters, digits and "-", 63 at most.`
      return [{ field: 'metadata.name', message }]
    }
    if (object.spec.service && !/^[a-z]/.test(name)) {
      const message = `"${name}" cannot name a Service. Begin it with a letter, or remove service: true.`
      return [{ field: 'metadata.name', message }]
    }
    return []
  },
}
