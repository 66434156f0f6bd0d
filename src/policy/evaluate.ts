import type { PolicyConfig } from '../config/schema.ts'
import { canonicalJson } from '../api/hash.ts'
import { labels } from '../api/vocabulary.ts'
import { modes, type Finding, type Mode, type Rule, type RuleContext, type Subject, type Violation } from './rule.ts'
import { rules as allRules } from './rules.ts'

/** What is known of the namespace that a subject is in. */
export interface NamespaceView {
  readonly labels?: Readonly<Record<string, string>>
}

/**
 * Judges one change by every rule that applies, and returns all findings in the order of the table.
 *
 * A rule's mode comes from the configuration, which a namespace label can only lower, and never for integrity rules or
 * locked namespaces. An UPDATE of an object that is being deleted is judged by the integrity rules about changes alone:
 * its finalizers must come off. On UPDATE a state violation that the old object had too is a warning. A rule that throws
 * counts as violated, and hides no other.
 */
export function evaluate(
  subject: Subject,
  context: RuleContext,
  namespace: NamespaceView,
  rules: readonly Rule[] = allRules,
): Finding[] {
  const isGoing = subject.operation === 'UPDATE' && isBeingDeleted(subject)
  return rules
    .filter((rule) => applies(rule, subject) && (!isGoing || guardsTheGoing(rule)))
    .flatMap((rule) => judge(rule, subject, context, namespace))
}

/** The mode that the configuration gives a rule: its own id first, then the longest family, then the default. */
export function configuredMode(rule: Pick<Rule, 'id' | 'mode'>, config: PolicyConfig): Mode {
  const exact = config.rules[rule.id]
  if (exact) return exact
  const families = Object.keys(config.rules).filter((key) => key.endsWith('*') && rule.id.startsWith(key.slice(0, -1)))
  const longest = families.toSorted((a, b) => b.length - a.length)[0]
  return (longest === undefined ? undefined : config.rules[longest]) ?? rule.mode
}

function judge(rule: Rule, subject: Subject, context: RuleContext, namespace: NamespaceView): Finding[] {
  const configured = configuredMode(rule, context.config)
  const mode = weaker(configured, namespaceMode(rule, subject, context.config, namespace))
  if (mode === 'off') return []
  const violations = check(rule, subject, context)
  const isOld = violations.length > 0 ? oldViolations(rule, subject, context) : () => false
  return violations.map((violation) => {
    const own = weaker(mode, violation.atMost ?? 'enforce')
    const finding = {
      rule: rule.id,
      field: violation.field,
      message: `${violation.field}: ${violation.message} (${rule.id})`,
      ...(rule.claimReason && { claimReason: rule.claimReason }),
    }
    if (own === 'enforce' && subject.actor === 'break-glass')
      return { ...finding, mode: 'warn', lowered: 'break-glass' }
    if (own === 'enforce' && isOld(violation)) return { ...finding, mode: 'warn', lowered: 'ratchet' }
    if (mode !== configured) return { ...finding, mode: own as Finding['mode'], lowered: 'namespace' }
    return { ...finding, mode: own as Finding['mode'] }
  })
}

/**
 * Finalizers must come off an object that is being deleted whatever it looks like. But a Pod may take as long to go as its
 * author likes, and until then it must not slip out of its NetworkPolicy: what nobody but the controllers may change,
 * nobody else may change then.
 */
function guardsTheGoing({ integrity, judges }: Rule): boolean {
  return integrity && judges === 'change'
}

function isBeingDeleted({ object, oldObject }: Subject): boolean {
  return (oldObject ?? object).metadata.deletionTimestamp !== undefined
}

function applies(rule: Rule, subject: Subject): boolean {
  return (
    rule.kinds.includes(subject.kind) &&
    rule.on.includes(subject.operation) &&
    (rule.subresources ?? ['']).includes(subject.subresource ?? '')
  )
}

function namespaceMode(rule: Rule, subject: Subject, config: PolicyConfig, namespace: NamespaceView): Mode {
  if (rule.integrity || config.admission.lockedNamespaces.includes(subject.namespace)) return 'enforce'
  const asked = namespace.labels?.[labels.namespaceMode]
  return modes.find((mode) => mode === asked) ?? 'enforce'
}

function weaker(a: Mode, b: Mode): Mode {
  return modes.indexOf(a) > modes.indexOf(b) ? a : b
}

/** Fails closed: what a rule cannot judge counts as refused by it. */
function check(rule: Rule, subject: Subject, context: RuleContext): readonly Violation[] {
  try {
    return rule.check(subject, context)
  } catch (error) {
    const because = error instanceof Error ? error.message : String(error)
    return [{ field: 'metadata', message: `the object could not be judged (${because}). Check that it is well-formed` }]
  }
}

/**
 * Tells which violations the old object had. A violation is recognised by its message and its path without list
 * indexes, each occurrence once, so that a list may be reordered but a second offence of the same kind is new.
 */
function oldViolations(rule: Rule, subject: Subject, context: RuleContext): (violation: Violation) => boolean {
  const { oldObject, ...rest } = subject
  if (rule.judges !== 'state' || subject.operation !== 'UPDATE' || !oldObject) return () => false
  if (!hasSameFacts(rule, subject.object, oldObject)) return () => false
  const remaining = new Map<string, number>()
  for (const violation of check(rule, { ...rest, object: oldObject, oldObject }, context)) {
    const key = identity(violation)
    remaining.set(key, (remaining.get(key) ?? 0) + 1)
  }
  return (violation) => {
    const key = identity(violation)
    const left = remaining.get(key) ?? 0
    remaining.set(key, left - 1)
    return left > 0
  }
}

/** Whether what is known from outside is about both objects. An old one that cannot be read has nothing in common. */
function hasSameFacts(rule: Rule, object: Subject['object'], oldObject: Subject['object']): boolean {
  try {
    return !rule.factsAbout || canonicalJson(rule.factsAbout(object)) === canonicalJson(rule.factsAbout(oldObject))
  } catch {
    return false
  }
}

function identity({ field, message }: Violation): string {
  return `${field.replaceAll(/\[\d+\]/g, '[]')}: ${message}`
}
