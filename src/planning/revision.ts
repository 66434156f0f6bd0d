import type { SandboxSet, SandboxTemplate } from '../api/kinds.ts'
import { blueprintOf, shortHash } from './blueprint.ts'
import { semanticForm } from './semantic-form.ts'

/**
 * Revision of a SandboxSet: ten lower-case hex digits over everything that makes a new version of its sandboxes. Two
 * ways to write the same ("1" and "1000m", nil and empty) are one revision.
 *
 * Any field under an inline `template` counts, its labels and annotations too: that is what the set's users are told.
 * From a SandboxTemplate only the blueprint counts. Undefined while the referenced template is missing.
 */
export function setRevision(set: SandboxSet, template?: SandboxTemplate): string | undefined {
  const { template: inline, templateRef, volumeClaimTemplates, persistentContents } = set.spec
  if (templateRef && !template) return undefined
  const source = templateRef && template ? blueprintOf(template) : { template: inline }
  // A set of words: their order says nothing.
  const kept = persistentContents?.toSorted()
  return shortHash(semanticForm({ source, volumeClaimTemplates, persistentContents: kept }), 10)
}
