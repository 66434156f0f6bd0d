import type { V1PodSpec, V1Toleration, V1Volume } from '@kubernetes/client-node'
import type { Pod } from '../../api/core.ts'
import { domains, labels } from '../../api/vocabulary.ts'
import { containersOf, ephemeralOf, listOf } from '../blueprint-view.ts'
import { changedFields } from '../changed-fields.ts'
import { domainOf, isWithin, keyChanges, keyPath } from '../keys.ts'
import { forbiddenOwnerChanges } from '../ownership.ts'
import { podSecurityViolations } from '../pod-security/violations.ts'
import type { Rule, Subject, Violation } from '../rule.ts'

/**
 * The router, the Service and the NetworkPolicy find a sandbox's Pod by its labels. An owner reference proves nothing,
 * since anyone can write a true UID; so only who asks counts, and Pods that a workload controller makes from a tenant's
 * template are a tenant's too.
 */
export const forgedSandbox: Rule<'Pod'> = {
  id: 'pod/forged-sandbox',
  kinds: ['Pod'],
  on: ['CREATE', 'UPDATE'],
  judges: 'change',
  integrity: true,
  mode: 'enforce',
  refuses:
    'Sandbox labels, and with them a Sandbox as owner, added, changed or removed on a Pod by anyone but the controllers.',
  why: "The Pod would get a sandbox's traffic, or leave its network policy. Pods that bear none of these labels, neither before nor after, never come to the gate: a Sandbox as their owner gains them nothing.",
  relax: 'Nothing does for a tenant; agents.x-k8s.io/adoptable is free on a Pod without an owner.',
  check({ object, oldObject, actor }) {
    if (actor === 'controller' || actor === 'trusted') return []
    const isUnowned = !hasOwners(object) && !hasOwners(oldObject)
    const forgedKeys = (['labels', 'annotations'] as const).flatMap((map) =>
      keyChanges(oldObject?.metadata[map], object.metadata[map])
        .filter(({ key }) => isWithin(domainOf(key), domains.agents) && !(key === labels.adoptable && isUnowned))
        .map(({ key, how }) => ({
          field: keyPath(`metadata.${map}`, key),
          message: `only the controllers mark the Pods of sandboxes, and this was ${how}. Leave it as it was; create a Sandbox instead.`,
        })),
    )
    const forgedOwners = forbiddenOwnerChanges(oldObject, object, actor, ({ kind }) => kind === 'Sandbox').map(
      ({ owner, how }) => ({
        field: 'metadata.ownerReferences',
        message: `only the controllers give a Pod to a Sandbox; Sandbox ${owner.name} was ${how}. Leave the owners as they are.`,
      }),
    )
    return [...forgedKeys, ...forgedOwners]
  },
}

function hasOwners(pod: Pod | undefined): boolean {
  return (pod?.metadata.ownerReferences ?? []).length > 0
}

/**
 * The API server itself lets little of a Pod's spec change: images, activeDeadlineSeconds, a negative
 * terminationGracePeriodSeconds, further tolerations, and what still waits behind scheduling gates. A new image is a new
 * program in a running sandbox. The marks of the old object count: adding them is the business of pod/forged-sandbox.
 *
 * No controller compares a Pod's images with its Sandbox's besides: webhooks of the cluster may rewrite them on the way,
 * to a registry's mirror say, and every such Pod would count as foreign.
 */
export const sandboxSpec: Rule<'Pod'> = {
  id: 'pod/sandbox-spec',
  kinds: ['Pod'],
  on: ['UPDATE'],
  judges: 'change',
  integrity: true,
  mode: 'enforce',
  refuses:
    "Changing the spec of a sandbox's Pod, by anyone but the controllers: an image, a deadline, tolerations or what scheduling gates hold open.",
  why: 'Another image would run in a sandbox that a claim holds or gets next; nothing looks for it later, since webhooks of the cluster may rewrite images when the Pod is created.',
  relax:
    'Nothing does for a tenant; list what has to, such as a queue that lifts scheduling gates, under admission.trustedUsers.',
  check({ object, oldObject, actor }) {
    if (!oldObject || actor === 'controller' || actor === 'trusted' || !isMarked(oldObject)) return []
    return changedFields(withoutAddedByServer(oldObject), withoutAddedByServer(object)).map((field) => ({
      field: `spec.${field}`,
      message: 'the Pod of a sandbox stays as the controllers made it. Make another sandbox of what you want to run.',
    }))
  },
}

/** The spec without what the API server's DefaultTolerationSeconds adds at any update, if it was not there before. */
function withoutAddedByServer({ spec }: Pod): object {
  const { tolerations, ...rest } = spec ?? {}
  const chosen = listOf(tolerations).filter((toleration) => !isAddedByServer(toleration))
  return chosen.length > 0 ? { ...rest, tolerations: chosen } : rest
}

function isAddedByServer({ key, operator, effect }: V1Toleration): boolean {
  const isOutage = key === 'node.kubernetes.io/not-ready' || key === 'node.kubernetes.io/unreachable'
  return isOutage && operator === 'Exists' && effect === 'NoExecute'
}

const sandboxLabels = [labels.sandboxNameHash, labels.warmPool, labels.templateRefHash]

/** `kubectl debug` adds a container to a running Pod, past everything its template was judged by. */
export const ephemeralContainer: Rule<'Pod'> = {
  id: 'pod/ephemeral-container',
  kinds: ['Pod'],
  on: ['UPDATE'],
  subresources: ['ephemeralcontainers'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
  refuses: "Ephemeral containers in a sandbox's Pod that break the Pod Security Standard or mount its token.",
  why: 'A debugging container runs in the same Pod, and would lift the isolation that the template gives.',
  relax: 'Set rules: {pod/ephemeral-container: warn}, or label the namespace sandgate.dev/admission: warn.',
  check(subject, { config, facts }) {
    const known = facts.pod?.kind === 'found' ? facts.pod.value : undefined
    if (!isSandboxPod(subject, known)) return []
    const { ephemeralContainers } = subject.object.spec ?? {}
    // On an older server the object holds nothing but its ephemeral containers: the rest is known from the Pod.
    const rest: V1PodSpec = known?.spec ?? subject.object.spec ?? { containers: [] }
    const spec: V1PodSpec = { ...rest, ephemeralContainers: ephemeralContainers ?? [] }
    return [
      ...podSecurityViolations({
        pod: { spec, annotations: {} },
        level: config.admission.podSecurity,
        specPath: 'spec',
        podPath: '',
        containers: ephemeralOf(spec),
        containersOnly: true,
      }),
      ...tokenMounts(spec),
    ]
  },
}

function isSandboxPod({ object, oldObject }: Subject<'Pod'>, known: Pod | undefined): boolean {
  return [object, oldObject, known].some((pod) => pod !== undefined && isMarked(pod))
}

function isMarked({ metadata }: Pod): boolean {
  return sandboxLabels.some((key) => metadata.labels?.[key] !== undefined)
}

const tokenDirectory = /^(\/var)?\/run\/secrets\/kubernetes\.io\/serviceaccount\/?$/

function tokenMounts(spec: V1PodSpec): Violation[] {
  const tokenVolumes = new Set([
    ...listOf(spec.volumes)
      .filter(holdsToken)
      .map(({ name }) => name),
    // Wherever the Pod's own containers have their token, that volume holds it: servers before 1.21 use a Secret.
    ...containersOf(spec).flatMap(({ container }) =>
      listOf(container.volumeMounts)
        .filter(({ mountPath }) => tokenDirectory.test(mountPath))
        .map(({ name }) => name),
    ),
  ])
  return ephemeralOf(spec).flatMap(({ at, container }) =>
    listOf(container.volumeMounts).flatMap(({ name }, i) => {
      if (!tokenVolumes.has(name)) return []
      const message = `container ${container.name} would read the service account token in volume ${name}. Remove the mount.`
      return [{ field: `spec.${at}.volumeMounts[${i}].name`, message }]
    }),
  )
}

function holdsToken({ projected }: V1Volume): boolean {
  return listOf(projected?.sources).some(({ serviceAccountToken }) => Boolean(serviceAccountToken))
}
