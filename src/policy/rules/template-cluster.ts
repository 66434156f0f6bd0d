import { blueprintOf } from '../blueprint-view.ts'
import type { Rule } from '../rule.ts'

/**
 * The schema of our kinds leaves the PodSpec open; the API server itself is asked instead. Only a verdict on the Pod
 * refuses: quota, a missing service account or no answer in time says nothing about the template.
 */
export const podInvalid: Rule<'SandboxTemplate' | 'SandboxSet' | 'Sandbox'> = {
  id: 'template/pod-invalid',
  kinds: ['SandboxTemplate', 'SandboxSet', 'Sandbox'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
  refuses: 'A Pod that the API server refuses when it is tried without being created.',
  why: 'The mistake shows now, where it was made, and not in the status of a pool that stays empty.',
  relax: 'Set rules: {template/pod-invalid: warn} in the configuration.',
  factsAbout: (object) => {
    const { podSpec, labels, annotations, volumeClaimTemplates } = blueprintOf(object)
    return { podSpec, labels, annotations, volumeClaimTemplates }
  },
  check({ object }, { facts }) {
    const { path } = blueprintOf(object)
    const { dryRun } = facts
    if (dryRun?.kind === 'unknown') {
      const message = `the Pod could not be tried (${dryRun.because}), so mistakes in it show only later.`
      return [{ field: path, message, atMost: 'warn' }]
    }
    if (dryRun?.kind !== 'found' || dryRun.value.accepted) return []
    const causes = dryRun.value.causes.length > 0 ? dryRun.value.causes : [{}]
    return causes.map((cause) => ({
      field: cause.field ? `${path}.${cause.field}` : path,
      message: `the API server refuses this Pod: ${cause.message ?? 'it gives no reason'}. Correct it and apply again.`,
    }))
  },
}

/** Pools keep their stock, but make nothing new until the template is back. */
export const templateInUse: Rule<'SandboxTemplate'> = {
  id: 'template/in-use',
  kinds: ['SandboxTemplate'],
  on: ['DELETE'],
  judges: 'state',
  integrity: false,
  mode: 'warn',
  refuses: 'Deleting a template that pools refer to.',
  why: 'These pools keep their stock and create nothing new.',
  relax: 'Delete the pools first, or point them to another template.',
  check({ object }, { facts }) {
    const pools = facts.poolsOfTemplate ?? []
    if (pools.length === 0) return []
    const shown = pools.length > 5 ? `${pools.slice(0, 5).join(', ')} and ${pools.length - 5} more` : pools.join(', ')
    const message = `template ${object.metadata.name} is used by ${shown}, which can create nothing without it. Delete these first, or create it again.`
    return [{ field: 'metadata.name', message }]
  },
}
