import type { Sandbox, SandboxSet, SandboxTemplate, SandboxWarmPool } from '../src/api/kinds.ts'
import { nameHash, poolHash } from '../src/api/hash.ts'
import type { KubeObject } from '../src/kube/object.ts'
import type { Known, Subject } from '../src/policy/rule.ts'
import type { IndexFunction, ReadStore } from '../src/runtime/store.ts'

/**
 * Name of the index under which the gate looks for objects whose names hash alike. The stores given to the gate declare
 * it: `namespace/hash`.
 */
export const nameHashIndex = 'nameHash'

const by =
  (hash: (name: string) => string): IndexFunction<KubeObject> =>
  ({ metadata: { namespace = '', name = '' } }) => [`${namespace}/${hash(name)}`]

/** For stores of SandboxTemplates and of Sandboxes. */
export const byNameHash = by(nameHash)
/** For the store of SandboxWarmPools. */
export const byWarmPoolHash = by((name) => poolHash('SandboxWarmPool', name))
/** For the store of SandboxSets; it is a set's hash among pools, and that of its inline template among templates. */
export const bySetHash = by((name) => poolHash('SandboxSet', name))

export interface HashedStores {
  readonly sandboxes: ReadStore<Sandbox>
  readonly templates: ReadStore<SandboxTemplate>
  readonly warmPools: ReadStore<SandboxWarmPool>
  readonly sets: ReadStore<SandboxSet>
}

/**
 * Another object of the subject's namespace that shares a label value with it because their names have the same 32-bit
 * hash. Pools of both kinds share one space; templates share theirs with the inline templates of sets.
 */
export function sameHash(subject: Subject, stores: HashedStores): Known<KubeObject> {
  const { name = '' } = subject.object.metadata
  for (const [kind, store] of spaceOf(subject, stores)) {
    const hash =
      subject.kind === 'SandboxWarmPool' || subject.kind === 'SandboxSet'
        ? poolHash(subject.kind, name)
        : nameHash(name)
    const other = store
      .indexed(nameHashIndex, `${subject.namespace}/${hash}`)
      .find((each) => kind !== subject.kind || each.metadata.name !== name)
    // Objects that came in a list carry no kind of their own.
    if (other) return { kind: 'found', value: { ...other, kind } }
  }
  return { kind: 'missing' }
}

function spaceOf({ kind }: Subject, stores: HashedStores): [string, ReadStore<KubeObject>][] {
  const { sandboxes, templates, warmPools, sets } = stores
  switch (kind) {
    case 'SandboxWarmPool':
      return [
        ['SandboxWarmPool', warmPools],
        ['SandboxSet', sets],
      ]
    case 'SandboxSet':
      return [
        ['SandboxSet', sets],
        ['SandboxWarmPool', warmPools],
        ['SandboxTemplate', templates],
      ]
    case 'SandboxTemplate':
      return [
        ['SandboxTemplate', templates],
        ['SandboxSet', sets],
      ]
    case 'Sandbox':
      return [['Sandbox', sandboxes]]
    case 'SandboxClaim':
    case 'Pod':
      return []
    default:
      return kind satisfies never
  }
}
