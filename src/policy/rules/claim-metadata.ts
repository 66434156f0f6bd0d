import { annotations, claimReasons, domains, labels } from '../../api/vocabulary.ts'
import { blueprintOf } from '../blueprint-view.ts'
import { domainOf, isRouterLabel, isWithin, keyChanges, keyPath, matchesEntry } from '../keys.ts'
import { isLabelValue, isMetadataKey } from '../names.ts'
import type { Rule, Violation } from '../rule.ts'
import { poolOf, templateOf } from './claim-facts.ts'

const shared = {
  kinds: ['SandboxClaim'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
  claimReason: claimReasons.invalidMetadata,
} as const

const labelsPath = 'spec.additionalPodMetadata.labels'
const annotationsPath = 'spec.additionalPodMetadata.annotations'

/** Labels are what NetworkPolicies, Services and schedulers select by; a claim gets a domain where nothing selects. */
export const labelDomain: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/label-domain',
  refuses:
    'Pod labels outside the domains set aside for users (sandbox.users.io and its subdomains), or malformed ones.',
  why: 'Network policies, Services and quotas select by labels; a claim could slip under another one.',
  relax: 'Add a domain to admission.labelDomains in the configuration.',
  check({ object }, { config }) {
    const { labelDomains } = config.admission
    return Object.entries(object.spec.additionalPodMetadata?.labels ?? {}).flatMap(([key, value]): Violation[] => {
      const field = keyPath(labelsPath, key)
      if (!labelDomains.some((domain) => isWithin(domainOf(key), domain))) {
        const name = key.slice(key.indexOf('/') + 1)
        const example = labelDomains[0] ? ` Write it as ${labelDomains[0]}/${name}.` : ''
        return [
          { field, message: `a claim may set Pod labels only in ${labelDomains.join(', ') || 'no domain'}.${example}` },
        ]
      }
      if (!isMetadataKey(key) || !isLabelValue(value)) {
        return [
          {
            field,
            message: `${key}=${value} is not a valid label. Use letters, digits, "-", "_" and ".", 63 at most.`,
          },
        ]
      }
      return []
    })
  },
}

const reservedAnnotationDomains = ['kubernetes.io', 'k8s.io', domains.agents, domains.kruise, domains.sandgate]

/** Annotations of the system's domains are instructions to its components, not notes. */
export const annotationDomain: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/annotation-domain',
  refuses: 'Pod annotations in reserved domains (safe-to-evict of the cluster autoscaler excepted), or malformed ones.',
  why: 'Kubernetes and the controllers act on annotations in these domains.',
  relax: 'Use a domain of your own, or let the template set the annotation.',
  check({ object }) {
    return Object.keys(object.spec.additionalPodMetadata?.annotations ?? {}).flatMap((key): Violation[] => {
      const field = keyPath(annotationsPath, key)
      const reserved = reservedAnnotationDomains.find((domain) => isWithin(domainOf(key), domain))
      if (reserved && key !== annotations.safeToEvict) {
        return [
          {
            field,
            message: `the domain ${reserved} is reserved. Use a domain of your own, or let the template set it.`,
          },
        ]
      }
      if (!isMetadataKey(key)) {
        return [{ field, message: `"${key}" is not a valid annotation key. Use letters, digits, "-", "_" and ".".` }]
      }
      return []
    })
  },
}

/** Kernel parameters, networks, meshes and cloud identities can all be ordered through annotations. */
export const runtimeAnnotation: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/runtime-annotation',
  refuses: 'Pod annotations that steer the container runtime, the network, a service mesh or a cloud identity.',
  why: 'They change the isolation of the sandbox, or whom it can speak as.',
  relax: 'Let the template set the annotation, or shorten admission.runtimeAnnotationDomains in the configuration.',
  check({ object }, { config }) {
    return Object.keys(object.spec.additionalPodMetadata?.annotations ?? {}).flatMap((key) => {
      const entry = config.admission.runtimeAnnotationDomains.find((candidate) => matchesEntry(key, candidate))
      if (!entry) return []
      const message = `annotations under ${entry} steer the sandbox's runtime, network or identity. Remove it, or let the template set it.`
      return [{ field: keyPath(annotationsPath, key), message }]
    })
  },
}

/** The template speaks first; a claim adds. */
export const metadataConflict: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/metadata-conflict',
  refuses: 'A label or annotation that the template sets to another value.',
  why: 'The Pod can have only one value, and the author of the template has chosen it.',
  relax: 'Use another key, or remove the key from the template.',
  factsAbout: poolOf,
  check({ object }, context) {
    const template = templateOf(context)
    if (!template) return []
    const set = blueprintOf(template)
    const { labels: ownLabels, annotations: ownAnnotations } = object.spec.additionalPodMetadata ?? {}
    const conflicts = (
      path: string,
      own: Record<string, string> | undefined,
      theirs: Readonly<Record<string, string>>,
    ) =>
      Object.entries(own ?? {})
        .filter(([key, value]) => theirs[key] !== undefined && theirs[key] !== value)
        .map(([key, value]) => ({
          field: keyPath(path, key),
          message: `template ${template.metadata.name} sets it to "${theirs[key]}", not "${value}". Use another key, or the same value.`,
        }))
    return [
      ...conflicts(labelsPath, ownLabels, set.labels),
      ...conflicts(annotationsPath, ownAnnotations, set.annotations),
    ]
  },
}

/** The default NetworkPolicy lets in whatever bears the router's label in the router's namespace. */
export const routerLabel: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/router-label',
  refuses: 'The label app=sandbox-router, in any case.',
  why: 'Pods with this label in the namespace network.routerNamespace (agent-sandbox-system) are admitted to every sandbox by the default network policy, and policies of your own may ask for no more than the label.',
  relax: 'Nothing relaxes it; give the Pod another label.',
  check({ object }) {
    return Object.entries(object.spec.additionalPodMetadata?.labels ?? {})
      .filter(([key, value]) => isRouterLabel(key, value))
      .map(([key]) => ({
        field: keyPath(labelsPath, key),
        message: 'only the router may be labelled app=sandbox-router, since it is let in to every sandbox. Remove it.',
      }))
  },
}

/** Keys on the claim itself that clients write. */
const clientKeys: ReadonlySet<string> = new Set([labels.createdBy, annotations.clientFirstRequestedAt])

/**
 * Controllers act on these keys (an old mark names the sandbox to take, a stamp says who asked), so only they write them.
 * Mutation has already put our own stamps right; a requested-by that still differs from the user is a forgery.
 */
export const claimReservedKeys: Rule<'SandboxClaim'> = {
  id: 'claim/reserved-keys',
  kinds: ['SandboxClaim'],
  on: ['CREATE', 'UPDATE'],
  judges: 'change',
  integrity: true,
  mode: 'enforce',
  refuses: 'Setting, changing or removing labels and annotations of agents.x-k8s.io and sandgate.dev on a claim.',
  why: 'Controllers take these keys for their own notes: which sandbox was assigned, and who asked for it.',
  relax: 'Nothing does for a tenant; list a backup tool under admission.trustedUsers.',
  check({ object, oldObject, operation, actor, username }) {
    if (actor === 'controller' || actor === 'trusted') return []
    const isStamp = (key: string) =>
      operation === 'CREATE' &&
      (key === annotations.webhookFirstObservedAt ||
        (key === annotations.requestedBy && object.metadata.annotations?.[key] === username))
    return (['labels', 'annotations'] as const).flatMap((map) =>
      keyChanges(oldObject?.metadata[map], object.metadata[map])
        .filter(({ key }) => domainOf(key) === domains.agents || isWithin(domainOf(key), domains.sandgate))
        .filter(({ key }) => !clientKeys.has(key) && !(map === 'annotations' && isStamp(key)))
        .map(({ key, how }) => ({
          field: keyPath(`metadata.${map}`, key),
          message: `it is reserved for the controllers and was ${how}. Leave it as it ${how === 'added' ? 'was: absent' : 'was'}.`,
        })),
    )
  },
}
