import type { ErrorCause } from '../src/kube/errors.ts'
import type { Finding } from '../src/policy/rule.ts'
import type { AdmissionRequest, Verdict } from './review.ts'
import { plainText, shortened } from './text.ts'

/** Findings spelled out in one answer. An object of 3 MiB can break a rule 100,000 times. */
const shownFindings = 25
/** Longest line of a denial: room for a path, a quoted value and the advice. */
const longestLine = 1000

/** Rules about what is well-formed. When only these refuse, the answer is "invalid" (422) instead of "forbidden" (403). */
const rulesOfForm: ReadonlySet<string> = new Set([
  'claim/env-name',
  'claim/volume-names',
  'claim/spec-immutable',
  'claim/name',
  'claim/expiry',
  'template/volume-names',
  'template/pod-invalid',
  'pool/name',
  'set/template-choice',
  'set/max-unavailable',
  'set/volume-mounted',
  'set/persistent-contents',
  'sandbox/volumes-immutable',
  'sandbox/name',
])

/** Turns all findings on a change into one answer: every refusal in it, warnings beside it, the rest for the audit log. */
export function verdictOf(findings: readonly Finding[], request: AdmissionRequest): Verdict {
  const denials = findings.filter(({ mode }) => mode === 'enforce')
  const warnings = findings.filter(({ mode }) => mode === 'warn').map(({ message }) => message)
  const audit = auditAnnotations(findings, request)
  if (denials.length === 0) return { kind: 'allowed', warnings, audit }
  return {
    kind: 'denied',
    code: denials.every(({ rule }) => rulesOfForm.has(rule)) ? 422 : 403,
    message: denialText(denials.map(({ message }) => message)),
    causes: denials.slice(0, shownFindings).map(causeOf),
    warnings,
    audit,
    of: refusedObject(request),
  }
}

/** The answer to an object that does not have its kind's shape, so that no rule could read it. */
export function invalid(problems: readonly ErrorCause[], request: AdmissionRequest): Verdict {
  const lines = problems.map(({ field, message }) => `${field}: ${message}`)
  return {
    kind: 'denied',
    code: 422,
    message: denialText(lines),
    causes: problems.slice(0, shownFindings).map((problem) => ({ reason: 'FieldValueInvalid', ...problem })),
    of: refusedObject(request),
  }
}

/** What a refusal speaks of, for the details of its status. */
export function refusedObject({ name, target }: AdmissionRequest) {
  return { name, group: target.resource.group, kind: target.kind }
}

/** One sentence, or a list with a line for each. */
function denialText(messages: readonly string[]): string {
  const lines = messages.map((message) => shortened(plainText(message), longestLine))
  if (lines.length === 1) return lines[0] ?? ''
  const rest = lines.length > shownFindings ? [`and ${lines.length - shownFindings} more`] : []
  return [`${lines.length} problems:`, ...[...lines.slice(0, shownFindings), ...rest].map((line) => `- ${line}`)].join(
    '\n',
  )
}

/** kubectl prints `field: message`, so the field is taken off the message. */
function causeOf({ rule, field, message }: Finding): ErrorCause {
  const prefix = `${field}: `
  return {
    reason: rule,
    field,
    message: shortened(plainText(message.startsWith(prefix) ? message.slice(prefix.length) : message), longestLine),
  }
}

/** Rule ids by what became of them. The API server puts the webhook's name in front of each key. */
function auditAnnotations(findings: readonly Finding[], { user }: AdmissionRequest): Record<string, string> {
  const idsOf = (chosen: (finding: Finding) => boolean) => [...new Set(findings.filter(chosen).map(({ rule }) => rule))]
  const annotations: Record<string, string> = {}
  const note = (key: string, ids: readonly string[]) => {
    if (ids.length > 0) annotations[key] = ids.join(',')
  }
  note(
    'denied',
    idsOf(({ mode }) => mode === 'enforce'),
  )
  note(
    'warned',
    idsOf(({ mode }) => mode === 'warn'),
  )
  note(
    'would-deny',
    idsOf(({ mode, lowered }) => mode === 'audit' || lowered !== undefined),
  )
  if (findings.some(({ lowered }) => lowered === 'break-glass')) annotations['break-glass'] = plainText(user.username)
  return annotations
}
