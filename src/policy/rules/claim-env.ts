import type { V1Container } from '@kubernetes/client-node'
import type { EnvVar } from '../../api/schema.ts'
import type { SandboxTemplate } from '../../api/kinds.ts'
import { claimReasons } from '../../api/vocabulary.ts'
import { initAndMainOf, listOf } from '../blueprint-view.ts'
import type { Rule, RuleContext, Subject, Violation } from '../rule.ts'
import { poolOf, templateOf } from './claim-facts.ts'

const shared = {
  kinds: ['SandboxClaim'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
  claimReason: claimReasons.envVarsInjectionRejected,
} as const

/** A template's author decides whether its containers can be steered from outside; silence means no. */
export const envPolicy: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/env-policy',
  refuses: 'Environment variables in a claim whose template says Disallowed, which is what it says by default.',
  why: 'Variables steer what runs in a container, and its author has not agreed to that.',
  relax: 'Set envVarsInjectionPolicy: Allowed (or Overrides) on the template.',
  factsAbout: poolOf,
  check({ object }, context) {
    const template = templateOf(context)
    if (!template || !object.spec.env?.length || policyOf(template) !== 'Disallowed') return []
    const message =
      `template ${template.metadata.name} lets no claim set variables. ` +
      'Remove env, or set envVarsInjectionPolicy: Allowed on the template.'
    return [{ field: 'spec.env', message }]
  },
}

/** Allowed means "may add". A variable that the template sets keeps the value its author chose. */
export const envOverride: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/env-override',
  refuses: 'Under the policy Allowed, a variable that the target container already sets.',
  why: 'Allowed lets a claim add variables, not change those the template relies on.',
  relax: 'Set envVarsInjectionPolicy: Overrides on the template.',
  factsAbout: poolOf,
  check: (subject, context) =>
    underAllowed(subject, context, (variable, field, container, template) => {
      if (!listOf(container.env).some(({ name }) => name === variable.name)) return []
      const message =
        `${variable.name} is already set by template ${template.metadata.name}; policy Allowed lets a claim add ` +
        'variables, not change them. Rename it, or set envVarsInjectionPolicy: Overrides on the template.'
      return [{ field: `${field}.name`, message }]
    }),
}

/** What a container takes from ConfigMaps and Secrets has names that nobody knows at admission. */
export const envFrom: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/env-from',
  refuses: 'Under the policy Allowed, a variable for a container with envFrom.',
  why: 'The names that envFrom brings are not known, so an addition cannot be told from a change.',
  relax: 'List the variables in the template one by one, or set envVarsInjectionPolicy: Overrides on it.',
  factsAbout: poolOf,
  check: (subject, context) =>
    underAllowed(subject, context, (variable, field, container, template) => {
      if (!listOf(container.envFrom).length) return []
      const message =
        `${variable.name} may change a variable that container ${container.name} of template ${template.metadata.name} ` +
        'takes from envFrom, which policy Allowed forbids. Set envVarsInjectionPolicy: Overrides on the template, or list its variables there.'
      return [{ field, message }]
    }),
}

/** A variable for a container that does not exist would be lost without a word. */
export const envContainer: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/env-container',
  refuses: 'A containerName that is no init or main container of the template.',
  why: 'The variable would reach no process.',
  relax: 'Name a container of the template, or leave containerName out for the first one.',
  factsAbout: poolOf,
  check({ object }, context) {
    const template = templateOf(context)
    if (!template) return []
    const names = initAndMainOf(template.spec.podTemplate.spec).map(({ container }) => container.name)
    return variablesOf(object.spec.env).flatMap(({ variable, field }) => {
      if (!variable.containerName || names.includes(variable.containerName)) return []
      const message =
        `template ${template.metadata.name} has no container ${variable.containerName}; it has ${names.join(', ')}. ` +
        'Name one of these, or leave containerName out for the first main container.'
      return [{ field: `${field}.containerName`, message }]
    })
  },
}

// The characters that every supported API server takes; newer ones take more.
const variableName = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/

/** The API server would refuse the Pod, long after the claim was accepted; of two values one would be lost. */
export const envName: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/env-name',
  refuses: 'A name that is no valid variable name, and the same name twice for one container.',
  why: 'The Pod could not be created, or one of the two values would be lost.',
  relax: 'Use letters, digits, "_", "-" and ".", not beginning with a digit, each name once.',
  factsAbout: poolOf,
  check({ object }, context) {
    const template = templateOf(context)
    const first = template && listOf(template.spec.podTemplate.spec.containers)[0]?.name
    const seen = new Map<string, Set<string>>()
    return variablesOf(object.spec.env).flatMap(({ variable, field }): Violation[] => {
      if (!variableName.test(variable.name)) {
        const message = `"${variable.name}" is not a valid variable name. Use letters, digits, "_", "-" and ".", not beginning with a digit.`
        return [{ field: `${field}.name`, message }]
      }
      const target = variable.containerName || first || ''
      const names = seen.get(target) ?? new Set()
      seen.set(target, names)
      const isRepeated = names.has(variable.name)
      names.add(variable.name)
      if (!isRepeated) return []
      const message = `${variable.name} appears twice for container ${target || '(the first)'}. Keep one of the two.`
      return [{ field: `${field}.name`, message }]
    })
  },
}

/** Variables that make a process load other code give the claim the powers of every program in the sandbox. */
export const envReserved: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/env-reserved',
  refuses: 'Variables that change how a process loads its code, such as LD_PRELOAD or NODE_OPTIONS.',
  why: 'They run code inside every process of the container, before and beneath whatever the template starts.',
  relax: 'Set the variable in the template, or shorten admission.envReserved in the configuration.',
  check({ object }, { config }) {
    return variablesOf(object.spec.env).flatMap(({ variable, field }) => {
      if (!config.admission.envReserved.some((entry) => matchesName(variable.name, entry))) return []
      const message =
        `${variable.name} changes how processes load their code and is not for claims. ` +
        'Remove it, or let the template set it.'
      return [{ field: `${field}.name`, message }]
    })
  },
}

function matchesName(name: string, entry: string): boolean {
  return entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : name === entry
}

function policyOf(template: SandboxTemplate) {
  return template.spec.envVarsInjectionPolicy ?? 'Disallowed'
}

function variablesOf(env: readonly EnvVar[] | undefined): { variable: EnvVar; field: string }[] {
  return (env ?? []).map((variable, i) => ({ variable, field: `spec.env[${i}]` }))
}

/** Looks at each variable with the container it would go to, when the template's policy is Allowed. */
function underAllowed(
  { object }: Subject<'SandboxClaim'>,
  context: RuleContext,
  look: (variable: EnvVar, field: string, container: V1Container, template: SandboxTemplate) => Violation[],
): Violation[] {
  const template = templateOf(context)
  if (!template || policyOf(template) !== 'Allowed') return []
  const podSpec = template.spec.podTemplate.spec
  return variablesOf(object.spec.env).flatMap(({ variable, field }) => {
    const target = variable.containerName
      ? initAndMainOf(podSpec).find(({ container }) => container.name === variable.containerName)?.container
      : listOf(podSpec.containers)[0]
    return target ? look(variable, field, target, template) : []
  })
}
