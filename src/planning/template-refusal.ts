import type { SandboxTemplate } from '../api/kinds.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { evaluate, type NamespaceView } from '../policy/evaluate.ts'
import type { Subject } from '../policy/rule.ts'
import { isSandboxSet, type Pool } from './pools.ts'

/**
 * Why the snapshot that the pool's sandboxes would be made from is refused by the admission rules, or undefined. Asked
 * again here since an object may be older than a rule, or have come in while the webhook was down. Whoever wrote it is
 * unknown by now, so it is judged as anyone's.
 */
export function templateRefusal(
  pool: Pool,
  referenced: SandboxTemplate | undefined,
  context: { readonly config: PolicyConfig; readonly now: number; readonly namespace: NamespaceView },
): string | undefined {
  const asked = {
    operation: 'CREATE',
    namespace: pool.metadata.namespace ?? '',
    actor: 'user',
    username: '',
  } as const
  const subjects: Subject[] = []
  if (isSandboxSet(pool)) subjects.push({ ...asked, kind: 'SandboxSet', object: pool })
  if (referenced) subjects.push({ ...asked, kind: 'SandboxTemplate', object: referenced })
  const { config, now, namespace } = context
  for (const subject of subjects) {
    const refusal = evaluate(subject, { config, now, facts: {} }, namespace).find(
      ({ mode, rule }) => mode === 'enforce' && /^(template|set)\//.test(rule),
    )
    if (refusal) return `${subject.kind} ${subject.object.metadata.name}: ${refusal.message}`
  }
  return undefined
}
