import type { Logger } from 'pino'
import type { SchemaProblem } from '../src/api/validators.ts'
import type { Config } from '../src/config/schema.ts'
import type { KubeObject } from '../src/kube/object.ts'
import type { Actor, Finding, RuleContext, Subject, SubjectKind } from '../src/policy/rule.ts'
import type { Clock } from '../src/runtime/clock.ts'
import type { EventRecorder } from '../src/telemetry/events.ts'
import type { Metrics } from '../src/telemetry/metrics.ts'
import type { Deadline } from './deadline.ts'
import type { FactSource, Surroundings } from './facts.ts'
import type { AdmissionRequest, Verdict } from './review.ts'
import { subjectOf } from './subject.ts'
import { onOneLine } from './text.ts'
import { invalid, verdictOf } from './verdict.ts'

/** The rules, as functions, so that a test can put others in their place. */
export interface Judgement {
  evaluate(subject: Subject, context: RuleContext, namespace: { labels?: Readonly<Record<string, string>> }): Finding[]
  actorOf(user: { username: string; groups: readonly string[] }, config: Config): Actor
  /** What is wrong with the shape of an object of our kinds; empty for kinds that are not ours. */
  problemsOf(kind: SubjectKind, object: KubeObject): readonly SchemaProblem[]
}

export interface ValidateDependencies {
  readonly judgement: Judgement
  readonly facts: FactSource
  readonly config: () => Config
  readonly clock: Clock
  /** Milliseconds to add to the clock to get the API server's. */
  readonly serverClockOffsetMs: () => number
  readonly log: Logger
  readonly metrics?: Pick<Metrics, 'admissionRefusals'>
  readonly events?: Pick<EventRecorder, 'record'>
}

/** Reason of the Event about a refusal; `sandgate status` lists these. */
export const refusedReason = 'AdmissionRefused'

/** Judges a change by every rule. Rejects only on a defect in the gate itself. */
export type Validate = (request: AdmissionRequest, deadline: Deadline) => Promise<Verdict>

export function createValidate(dependencies: ValidateDependencies): Validate {
  const { judgement, facts, clock, serverClockOffsetMs } = dependencies

  return async function validate(request, deadline) {
    // Finalizers must come off whatever the object looks like; integrity, which still holds, needs no facts at an update.
    const isGoing = request.oldObject?.metadata.deletionTimestamp !== undefined
    const problems = isGoing ? [] : shapeProblems(judgement, request)
    if (problems.length > 0) return invalid(problems, request)

    const config = dependencies.config()
    const subject = subjectOf(request, judgement.actorOf(request.user, config))
    const judge = ({ facts: known, namespaceLabels }: Surroundings) =>
      judgement.evaluate(
        subject,
        { now: clock.now() + serverClockOffsetMs(), config, facts: known },
        { labels: namespaceLabels },
      )
    const surroundings = isGoing ? nothingKnown : await facts.gather(subject, deadline)
    let findings = judge(surroundings)
    if (surroundings.mayBeOld && findings.some(isRefusal)) {
      findings = judge(await facts.confirm(subject, surroundings, deadline))
    }
    const verdict = verdictOf(findings, request)
    if (!request.dryRun) leaveTraces(dependencies, subject, findings, verdict)
    return verdict
  }
}

const nothingKnown: Surroundings = { facts: {}, namespaceLabels: {}, mayBeOld: false }

const isRefusal = ({ mode }: Finding): boolean => mode === 'enforce'

/**
 * What keeps the rules from reading the object. The API server has checked the same schema before it asks, so there is
 * something to find only where the installed CustomResourceDefinitions are not ours, or the caller is not an API server.
 */
function shapeProblems(
  judgement: Judgement,
  { target, object, operation }: AdmissionRequest,
): readonly SchemaProblem[] {
  return target.subresource || operation === 'DELETE' ? [] : judgement.problemsOf(target.kind, object)
}

/** The effects of a verdict, none of which a dry-run has. */
function leaveTraces(
  { facts, log, metrics, events }: ValidateDependencies,
  subject: Subject,
  findings: readonly Finding[],
  verdict: Verdict,
): void {
  const { kind, namespace, operation, object, username } = subject
  if (verdict.kind === 'allowed' && kind === 'SandboxClaim' && operation === 'CREATE') facts.noteClaimCreated(username)
  for (const { rule, mode, lowered } of firstOfEachRule(findings)) {
    metrics?.admissionRefusals.inc({ rule, mode, namespace })
    const fields = { rule, kind, namespace, name: object.metadata.name, username }
    if (lowered === 'break-glass') log.warn(fields, 'a break-glass user was let past a rule')
    else if (mode === 'audit') log.info(fields, 'a change breaks a rule that is only audited')
  }
  if (verdict.kind === 'denied') {
    events?.record({ ...object, kind }, 'Warning', refusedReason, onOneLine(verdict.message))
  }
}

/** A rule that one object breaks a thousand times counts once. */
function firstOfEachRule(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.toReversed().map((finding) => [`${finding.rule} ${finding.mode}`, finding])).values()]
}
