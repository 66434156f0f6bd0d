import type { SandboxClaim } from '../api/kinds.ts'
import { claimReasons } from '../api/vocabulary.ts'
import type { Finding } from '../policy/rule.ts'
import type { NotReady } from './claim-status.ts'
import type { ClaimView } from './claim-view.ts'

/** Reasons and messages for claims that have no sandbox: what is in the way, and what to do about it. */

/** Clients give up at once on these, so they are written from live reads only. */
export const givingUp: ReadonlySet<string> = new Set([
  claimReasons.templateNotFound,
  claimReasons.warmPoolNotFound,
  claimReasons.invalidMetadata,
  claimReasons.envVarsInjectionRejected,
  claimReasons.volumeClaimTemplatesError,
  claimReasons.claimExpired,
  claimReasons.sandboxExpired,
])

/** The pool or template that is missing, if one is. */
export function missingReference(claim: SandboxClaim, view: ClaimView): NotReady | undefined {
  const { kind = 'SandboxWarmPool', name } = claim.spec.warmPoolRef
  if (view.pool.kind === 'missing') {
    const message = `${kind} ${name} does not exist in this namespace. Create it, or name another in spec.warmPoolRef.`
    return { reason: claimReasons.warmPoolNotFound, message }
  }
  if (view.template.kind === 'missing') {
    const message = `The SandboxTemplate that ${kind} ${name} refers to does not exist in this namespace.`
    return { reason: claimReasons.templateNotFound, message }
  }
  return undefined
}

/**
 * The refusal by policy. A rule without a reason of its own (the claim's name, its lifetime) counts as one about metadata;
 * a quota is the reason only when it is all there is, since it may be freed and the others want the claim changed.
 */
export function refusal(findings: readonly Finding[]): NotReady {
  const lasting = findings.filter((finding) => finding.claimReason !== claimReasons.quotaExceeded)
  const told = lasting.length > 0 ? lasting : findings
  const reason = told[0]?.claimReason ?? claimReasons.invalidMetadata
  return { reason, message: told.map((finding) => finding.message).join('\n') }
}

/** Someone else's Sandbox has the name that a cold start would need, or one that labels cannot tell from it. */
export function nameTaken(claim: SandboxClaim, otherName: string | undefined): NotReady {
  const { name } = claim.metadata
  const holder =
    otherName === name || otherName === undefined
      ? `A Sandbox named ${name} exists and is not this claim's, and a cold start would need the name. `
      : `A cold start would need a Sandbox named ${name}, whose hash is that of Sandbox ${otherName}. `
  const message = `${holder}Delete that Sandbox, or create the claim under another name.`
  return { reason: claimReasons.sandboxNameTaken, message }
}
