import { default as jsonPatch } from 'fast-json-patch'
import type { Config } from '../src/config/schema.ts'
import type { KubeObject } from '../src/kube/object.ts'
import type { MutationContext } from '../src/policy/mutations.ts'
import type { Subject } from '../src/policy/rule.ts'
import type { Clock } from '../src/runtime/clock.ts'
import type { AdmissionRequest, Verdict } from './review.ts'
import { subjectOf } from './subject.ts'
import type { Judgement } from './validate.ts'

export interface MutateDependencies {
  readonly judgement: Pick<Judgement, 'actorOf' | 'problemsOf'>
  /** The object with stamps and defaults; the subject stays as it is. */
  readonly mutate: (subject: Subject, context: MutationContext) => KubeObject
  readonly config: () => Config
  readonly clock: Clock
  readonly serverClockOffsetMs: () => number
}

/** Answers with the JSON Patch that turns the object into what is to be stored. Rejects only on a defect. */
export type Mutate = (request: AdmissionRequest) => Verdict

export function createMutate({ judgement, mutate, config, clock, serverClockOffsetMs }: MutateDependencies): Mutate {
  return (request) => {
    if (request.operation === 'DELETE' || request.oldObject?.metadata.deletionTimestamp !== undefined) {
      return { kind: 'allowed' }
    }
    // Mutation comes before the API server's own schema check, whose answer is the better one.
    if (judgement.problemsOf(request.target.kind, request.object).length > 0) return { kind: 'allowed' }
    const inForce = config()
    const subject = subjectOf(request, judgement.actorOf(request.user, inForce))
    const now = clock.now() + serverClockOffsetMs()
    const wanted = mutate(subject, { now, config: inForce, requestUser: request.user.username })
    return { kind: 'allowed', patch: patchBetween(request.object, wanted) }
  }
}

/**
 * The operations that lead from one object to the other, each as deep in the object as the difference is; a missing
 * parent is added together with its content. managedFields belong to the server and are left out.
 */
export function patchBetween(from: KubeObject, to: KubeObject): object[] {
  return jsonPatch.compare(from, to).filter(({ path }) => !/^\/metadata\/managedFields(?:\/|$)/.test(path))
}
