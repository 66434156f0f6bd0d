import type { SandboxSet, SandboxWarmPool } from '../../api/kinds.ts'
import { isDnsLabel, maxLabelLength, nameOf } from '../names.ts'
import type { Rule, Violation } from '../rule.ts'

type PoolKind = 'SandboxWarmPool' | 'SandboxSet'

const shared = {
  kinds: ['SandboxWarmPool', 'SandboxSet'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
} as const

/** In one `kubectl apply` a pool may come before its template: it waits. */
export const poolTemplateMissing: Rule<PoolKind> = {
  ...shared,
  id: 'pool/template-missing',
  mode: 'warn',
  refuses: 'A pool whose template does not exist.',
  why: 'The pool stays empty until the template appears.',
  relax: 'Create the template, or name one that exists.',
  check({ object }, { facts }): Violation[] {
    const ref = templateRefOf(object)
    if (!ref || facts.template?.kind !== 'missing') return []
    const message = `SandboxTemplate ${ref.name} does not exist in this namespace; the pool waits for it. Create it, or name another.`
    return [{ field: ref.field, message }]
  },
}

function templateRefOf({ spec }: SandboxWarmPool | SandboxSet): { field: string; name: string } | undefined {
  if ('sandboxTemplateRef' in spec) return { field: 'spec.sandboxTemplateRef.name', name: spec.sandboxTemplateRef.name }
  return 'templateRef' in spec && spec.templateRef
    ? { field: 'spec.templateRef.name', name: spec.templateRef.name }
    : undefined
}

/** Also holds for `kubectl scale` and autoscalers, which write the scale subresource. */
export const replicasCap: Rule<PoolKind> = {
  ...shared,
  id: 'pool/replicas-cap',
  subresources: ['', 'scale'],
  refuses: 'More replicas than pools.maxReplicas, also through the scale subresource.',
  why: 'Every replica is a running Pod, whether anyone uses it or not.',
  relax: 'Ask for fewer, or raise pools.maxReplicas in the configuration.',
  check({ object }, { config }) {
    const { maxReplicas } = config.pools
    const replicas = object.spec.replicas ?? 0
    if (maxReplicas === undefined || replicas <= maxReplicas) return []
    const message = `${replicas} is more than the ${maxReplicas} that pools.maxReplicas allows. Ask for ${maxReplicas} or fewer.`
    return [{ field: 'spec.replicas', message }]
  },
}

/** Members are named `<pool>-<10 random characters>`. */
const memberSuffixLength = 11

/** A name that had to be cut would no longer tell whose sandbox it is. */
export const poolName: Rule<PoolKind> = {
  ...shared,
  id: 'pool/name',
  refuses: 'A pool name that is longer than 52 characters or no DNS label.',
  why: 'Its sandboxes, their Pods and their labels bear the name with eleven more characters.',
  relax: 'Choose a shorter name of lower-case letters, digits and "-".',
  check({ object }) {
    const name = nameOf(object.metadata)
    const longest = maxLabelLength - memberSuffixLength
    if (name.length <= longest && isDnsLabel(name)) return []
    const message = `"${name}" does not fit into the names of its sandboxes. Use lower-case letters, digits and "-", ${longest} at most.`
    return [{ field: 'metadata.name', message }]
  },
}
