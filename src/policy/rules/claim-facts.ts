import type { SandboxClaim, SandboxTemplate } from '../../api/kinds.ts'
import type { RuleContext } from '../rule.ts'

/** The template behind the claim's pool, when it is known to exist. */
export function templateOf({ facts }: RuleContext): SandboxTemplate | undefined {
  return facts.template?.kind === 'found' ? facts.template.value : undefined
}

/** The pool that a claim names, with the default kind written out. */
export function poolOf({ spec }: SandboxClaim): { kind: string; name: string } {
  return { kind: spec.warmPoolRef.kind ?? 'SandboxWarmPool', name: spec.warmPoolRef.name }
}
