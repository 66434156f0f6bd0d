import type { VolumeClaimTemplate } from '../../api/schema.ts'
import { blueprintOf } from '../blueprint-view.ts'
import { isDnsLabel } from '../names.ts'
import type { Rule, Violation } from '../rule.ts'

/** Names become Pod volumes and parts of PersistentVolumeClaim names. */
export const templateVolumeNames: Rule<'SandboxTemplate' | 'SandboxSet' | 'Sandbox'> = {
  id: 'template/volume-names',
  kinds: ['SandboxTemplate', 'SandboxSet', 'Sandbox'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
  refuses: 'Volume claim templates whose name is empty, invalid, or used twice.',
  why: 'The name becomes that of a Pod volume, so no sandbox could be created.',
  relax: 'Give each volume a name of its own: lower-case letters, digits and "-", 63 at most.',
  check: ({ object }) => volumeNameViolations(blueprintOf(object).volumeClaimTemplates),
}

/** What is wrong with the names of a list of volume claim templates. */
export function volumeNameViolations(templates: readonly VolumeClaimTemplate[]): Violation[] {
  const seen = new Set<string>()
  return templates.flatMap(({ metadata }, i): Violation[] => {
    const field = `spec.volumeClaimTemplates[${i}].metadata.name`
    const name = metadata?.name ?? ''
    if (name === '') return [{ field, message: 'a volume needs a name. Give it one that no other volume has.' }]
    if (!isDnsLabel(name)) {
      return [{ field, message: `"${name}" is not a valid name. Use lower-case letters, digits and "-", 63 at most.` }]
    }
    const isRepeated = seen.has(name)
    seen.add(name)
    return isRepeated ? [{ field, message: `the name ${name} is used twice. Rename one of the two volumes.` }] : []
  })
}
