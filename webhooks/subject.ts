import type { Actor, Subject, SubjectKind, Subjects } from '../src/policy/rule.ts'
import type { AdmissionRequest } from './review.ts'

/** The change that a request asks for, as the rules judge it. */
export function subjectOf(request: AdmissionRequest, kind: SubjectKind, actor: Actor): Subject {
  const { operation, subresource, namespace, oldObject, user } = request
  return {
    kind,
    operation,
    ...(subresource && { subresource }),
    namespace,
    object: inSubjectForm(request.object, request) as Subjects[SubjectKind],
    ...(oldObject && { oldObject: inSubjectForm(oldObject, request) as Subjects[SubjectKind] }),
    actor,
    username: user.username,
  }
}

/**
 * A `/scale` review carries a Scale, which reads like a pool as far as it goes. Servers before 1.22 send ephemeral
 * containers as an EphemeralContainers object, which holds them at the top instead of in a Pod's spec.
 */
function inSubjectForm(
  object: AdmissionRequest['object'],
  { subresource }: AdmissionRequest,
): AdmissionRequest['object'] {
  if (subresource !== 'ephemeralcontainers' || !('ephemeralContainers' in object)) return object
  const { ephemeralContainers, ...rest } = object
  return Object.assign(rest, { kind: 'Pod', spec: { ephemeralContainers } })
}
