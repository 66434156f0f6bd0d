import type { SandboxTemplate } from '../../api/kinds.ts'
import { blueprintOf, containersOf, listOf } from '../blueprint-view.ts'
import type { Facts, Rule, Violation } from '../rule.ts'

const shared = {
  kinds: ['SandboxSet'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
} as const

/** With both it would be unclear what a sandbox is made of; with neither there is nothing to make. */
export const templateChoice: Rule<'SandboxSet'> = {
  ...shared,
  id: 'set/template-choice',
  refuses: 'A set with both template and templateRef, or with neither.',
  why: 'It would be unclear what its sandboxes are made of.',
  relax: 'Give exactly one of the two.',
  check({ object }): Violation[] {
    const { template, templateRef } = object.spec
    if (template && templateRef) {
      const message = `the set already has a template of its own. Remove templateRef (${templateRef.name}) or template.`
      return [{ field: 'spec.templateRef', message }]
    }
    if (!template && !templateRef) {
      return [{ field: 'spec.template', message: 'the set has no template. Give it template or templateRef.' }]
    }
    return []
  },
}

/** The schema allows any integer or string. */
export const maxUnavailable: Rule<'SandboxSet'> = {
  ...shared,
  id: 'set/max-unavailable',
  refuses: 'A maxUnavailable that is neither a count nor a percentage from 0% to 100%.',
  why: 'The controller could not tell how far it may go.',
  relax: 'Write a count such as 2, or a percentage such as "20%".',
  check({ object }) {
    return (['scaleStrategy', 'updateStrategy'] as const).flatMap((strategy) => {
      const value = object.spec[strategy]?.maxUnavailable
      if (value === undefined || isCountOrPercent(value)) return []
      const message = `${JSON.stringify(value)} is neither a count nor a percentage. Write a count such as 2, or a percentage from "0%" to "100%".`
      return [{ field: `spec.${strategy}.maxUnavailable`, message }]
    })
  },
}

function isCountOrPercent(value: number | string): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && value >= 0
  return /^\d{1,3}%$/.test(value) && Number.parseInt(value, 10) <= 100
}

/** Storage that nobody mounts is paid for and empty; mostly the name is misspelt in one of the two places. */
export const volumeMounted: Rule<'SandboxSet'> = {
  ...shared,
  id: 'set/volume-mounted',
  refuses: 'A volume claim template that no container mounts.',
  why: 'The storage would be paid for and used by nobody; mostly one of the two names is misspelt.',
  relax: 'Mount the volume in a container, or remove it.',
  factsAbout: ({ spec }) => spec.templateRef?.name,
  check({ object }, { facts }) {
    const podSpec = blueprintOf(object).podSpec ?? referredTemplate(facts)?.spec.podTemplate.spec
    if (!podSpec) return []
    const mounted = new Set(
      containersOf(podSpec).flatMap(({ container }) => [
        ...listOf(container.volumeMounts).map(({ name }) => name),
        ...listOf(container.volumeDevices).map(({ name }) => name),
      ]),
    )
    return blueprintOf(object).volumeClaimTemplates.flatMap(({ metadata }, i) => {
      if (mounted.has(metadata.name)) return []
      const message = `no container mounts volume ${metadata.name}. Add a volumeMount of that name, or remove the volume.`
      return [{ field: `spec.volumeClaimTemplates[${i}].metadata.name`, message }]
    })
  },
}

function referredTemplate({ template }: Facts): SandboxTemplate | undefined {
  return template?.kind === 'found' ? template.value : undefined
}

/** Only what is in volumes survives the Pod. */
export const persistentContents: Rule<'SandboxSet'> = {
  ...shared,
  id: 'set/persistent-contents',
  refuses: 'Unknown values of persistentContents; ip and memory bring a warning.',
  why: 'Suspension deletes the Pod: its volumes are kept, its address and memory are not.',
  relax: 'Ask for filesystem only.',
  check({ object }): Violation[] {
    return (object.spec.persistentContents ?? []).flatMap((content: string, i): Violation[] => {
      const field = `spec.persistentContents[${i}]`
      if (content === 'filesystem') return []
      if (content === 'ip' || content === 'memory') {
        const message = `${content} does not survive suspension here; only the contents of volumes do. Remove it, or do not rely on it.`
        return [{ field, message, atMost: 'warn' }]
      }
      return [{ field, message: `"${content}" is not known. Use ip, memory or filesystem.` }]
    })
  },
}
