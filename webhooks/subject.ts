import type { V1EphemeralContainer } from '@kubernetes/client-node'
import type { Actor, Subject, Subjects, SubjectKind } from '../src/policy/rule.ts'
import type { KubeObject } from '../src/kube/object.ts'
import type { AdmissionRequest } from './review.ts'
import type { Target } from './table.ts'

/** The change that a request asks for, as the rules judge it. */
export function subjectOf(request: AdmissionRequest, actor: Actor): Subject {
  const { operation, target, namespace, oldObject, user } = request
  return {
    kind: target.kind,
    operation,
    ...(target.subresource && { subresource: target.subresource }),
    namespace,
    object: inSubjectForm(request.object, target),
    ...(oldObject && { oldObject: inSubjectForm(oldObject, target) }),
    actor,
    username: user.username,
  }
}

/**
 * A `/scale` review carries a Scale, which reads like a pool as far as it goes. Servers before 1.22 send ephemeral
 * containers as an EphemeralContainers object, which holds them at the top instead of in a Pod's spec.
 */
function inSubjectForm(object: KubeObject, { subresource }: Target): Subjects[SubjectKind] {
  if (subresource !== 'ephemeralcontainers' || !('ephemeralContainers' in object)) return object
  const { ephemeralContainers, metadata } = object
  const spec = { containers: [], ephemeralContainers: ephemeralContainers as V1EphemeralContainer[] }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec }
}
