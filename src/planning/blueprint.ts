import { createHash } from 'node:crypto'
import { nameHash } from '../api/hash.ts'
import { sandboxKind, sandboxSetKind, type Sandbox, type SandboxSet, type SandboxTemplate } from '../api/kinds.ts'
import { SandboxBlueprint } from '../api/schema.ts'
import { annotations, labels } from '../api/vocabulary.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { apiVersionOf, type OwnerReference } from '../kube/object.ts'
import { applySecureDefaults } from '../policy/secure-defaults.ts'
import { semanticForm } from './semantic-form.ts'

/** What a sandbox is made of, as far as it decides whether two are the same: Pod labels and annotations are left out. */
export interface Blueprint extends Omit<SandboxBlueprint, 'podTemplate'> {
  podTemplate: Omit<SandboxBlueprint['podTemplate'], 'metadata'>
}

const fieldNames = Object.keys(SandboxBlueprint.properties) as (keyof SandboxBlueprint)[]

/** The blueprint in a Sandbox or SandboxTemplate. Follows the schema, so that a new field of it is part of this too. */
export function blueprintOf(object: { readonly spec: SandboxBlueprint }): Blueprint {
  const blueprint: Record<string, unknown> = {}
  for (const field of fieldNames) if (object.spec[field] !== undefined) blueprint[field] = object.spec[field]
  const { metadata: _rewrittenAtAdoption, ...podTemplate } = object.spec.podTemplate
  return { ...blueprint, podTemplate }
}

/** The same for blueprints that mean the same. Fits a label. */
export function blueprintHash(blueprint: Blueprint): string {
  return shortHash(semanticForm(blueprint), 16)
}

/** Lower-case hex, cut off after `length` digits. */
export function shortHash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length)
}

/**
 * The template that a SandboxSet with an inline Pod template stands for: managed network with the secure default, no
 * injection. It bears the set's own kind, name and UID, which tells it from a SandboxTemplate of the same name.
 */
export function implicitTemplate(set: SandboxSet): SandboxTemplate {
  const { name, namespace, uid, generation } = set.metadata
  const { template, volumeClaimTemplates } = set.spec
  return {
    apiVersion: apiVersionOf(sandboxSetKind),
    kind: sandboxSetKind.kind,
    metadata: {
      ...(name !== undefined && { name }),
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(generation !== undefined && { generation }),
    },
    spec: {
      podTemplate: template ?? { spec: { containers: [] } },
      ...(volumeClaimTemplates && { volumeClaimTemplates }),
      networkPolicyManagement: 'Managed',
      envVarsInjectionPolicy: 'Disallowed',
      volumeClaimTemplatesPolicy: 'Disallowed',
    },
  }
}

/** How a template is named on what was made from it: a SandboxTemplate by its name, an implicit one as `SandboxSet/<name>`. */
export function templateRefOf(template: SandboxTemplate): string {
  const name = template.metadata.name ?? ''
  return template.kind === sandboxSetKind.kind ? `${sandboxSetKind.kind}/${name}` : name
}

export interface SandboxRequest {
  readonly name: string
  readonly namespace: string
  /** The pool or claim that it is made for. */
  readonly owner: OwnerReference
  readonly launchType: 'warm' | 'cold'
  readonly config: PolicyConfig
  /** Added to the Sandbox's own labels and annotations. */
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Added to those of its Pod, over the template's. */
  readonly podLabels?: Readonly<Record<string, string>>
  readonly podAnnotations?: Readonly<Record<string, string>>
}

/**
 * The Sandbox to create from a template, without its proof of origin (`withOrigin` adds it): the whole blueprint with
 * secure defaults applied, and the labels and annotations that every Sandbox from a template has. Parts of the template
 * are shared, not copied.
 */
export function buildSandboxFromTemplate(template: SandboxTemplate, request: SandboxRequest): Sandbox {
  const templateRef = templateRefOf(template)
  const templateRefLabel = { [labels.templateRefHash]: nameHash(templateRef) }
  const blueprint = blueprintOf(template)
  const { metadata: podMetadata } = template.spec.podTemplate
  const podAnnotations = { ...podMetadata?.annotations, ...request.podAnnotations }
  return {
    apiVersion: apiVersionOf(sandboxKind),
    kind: sandboxKind.kind,
    metadata: {
      name: request.name,
      namespace: request.namespace,
      labels: { ...request.labels, ...templateRefLabel, [labels.launchType]: request.launchType },
      annotations: {
        ...request.annotations,
        [annotations.podName]: request.name,
        [annotations.templateRef]: templateRef,
      },
      ownerReferences: [request.owner],
    },
    spec: {
      ...blueprint,
      podTemplate: {
        metadata: {
          labels: { ...podMetadata?.labels, ...request.podLabels, ...templateRefLabel },
          ...(Object.keys(podAnnotations).length > 0 && { annotations: podAnnotations }),
        },
        spec: applySecureDefaults(blueprint.podTemplate.spec, { template: template.spec, config: request.config }),
      },
    },
  }
}
