import type { Rule } from '../rule.ts'

/**
 * Labels carry the 32-bit hash of a name; in a namespace with 10,000 sandboxes two names alike are a matter of luck, and
 * with intent a matter of seconds. Whoever shares a hash shares stock, traffic and policy.
 */
export const hashCollision: Rule<'SandboxTemplate' | 'SandboxWarmPool' | 'SandboxSet' | 'Sandbox'> = {
  id: 'names/hash-collision',
  kinds: ['SandboxTemplate', 'SandboxWarmPool', 'SandboxSet', 'Sandbox'],
  on: ['CREATE'],
  judges: 'state',
  integrity: true,
  mode: 'enforce',
  refuses: 'A name whose 32-bit hash is that of another object of the same sort in the namespace.',
  why: 'Labels carry the hash, so the two would share their stock, their traffic or their network policy.',
  relax: 'Nothing does; choose another name.',
  check({ object }, { facts }) {
    if (facts.sameHash?.kind !== 'found') return []
    const { kind = 'object', metadata } = facts.sameHash.value
    const message = `the name "${object.metadata.name}" has the same hash as ${kind} ${metadata.name}, and labels tell them apart by it. Choose another name.`
    return [{ field: 'metadata.name', message }]
  },
}
