import type { TSchema } from 'typebox'
import type { KubeObject } from '../kube/object.ts'
import type { Kind } from './kind.ts'

/** A CustomResourceDefinition of apiextensions.k8s.io/v1, as far as sandgate writes one. */
export type CustomResourceDefinition = KubeObject & { spec: Record<string, unknown> }

/** A node of a structural schema: plain JSON. */
type StructuralSchema = { [keyword: string]: unknown }

/**
 * What apiextensions.k8s.io/v1 accepts in a structural schema, out of what the kinds use. Anything else (`$id`,
 * a library's own markers) is left out: the API server refuses the whole definition for one keyword it does not know.
 */
const keywords = new Set([
  'type',
  'description',
  'format',
  'default',
  'enum',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'required',
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
])

/**
 * The definition of a kind, valid on Kubernetes 1.20 and current servers. A few kilobytes, so that a plain
 * `kubectl apply`, which keeps a copy in an annotation of at most 256 KiB, can carry it.
 */
export function crdOf(kind: Kind): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${kind.group}`, labels: { 'app.kubernetes.io/part-of': 'sandgate' } },
    spec: {
      group: kind.group,
      scope: 'Namespaced',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        ...(kind.shortNames.length > 0 ? { shortNames: [...kind.shortNames] } : {}),
        categories: ['sandgate'],
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          ...subresourcesOf(kind),
          additionalPrinterColumns: kind.columns.map((column) => ({ ...column })),
          schema: { openAPIV3Schema: objectSchemaOf(kind) },
        },
      ],
    },
  }
}

function subresourcesOf(kind: Kind): { subresources?: object } {
  if (!kind.status) return {}
  const scale = {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  }
  return { subresources: { status: {}, ...(kind.scale ? { scale } : {}) } }
}

function objectSchemaOf(kind: Kind): StructuralSchema {
  return {
    type: 'object',
    description: kind.description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: structural(kind.spec),
      ...(kind.status ? { status: structural(kind.status) } : {}),
    },
  }
}

function structural(schema: TSchema): StructuralSchema {
  const node = schema as StructuralSchema
  const result: StructuralSchema = Object.fromEntries(Object.entries(node).filter(([keyword]) => keywords.has(keyword)))
  // The one combination that a structural schema allows without a type, in exactly this form.
  if (node['x-kubernetes-int-or-string']) return { anyOf: [{ type: 'integer' }, { type: 'string' }], ...result }
  if (isSchema(node['items'])) result['items'] = structural(node['items'])
  if (isSchema(node['additionalProperties'])) {
    result['additionalProperties'] = structural(node['additionalProperties'])
  }
  if (isSchema(node['properties'])) {
    result['properties'] = Object.fromEntries(
      Object.entries(node['properties']).map(([name, property]) => [name, structural(property as TSchema)]),
    )
  }
  return result
}

function isSchema(value: unknown): value is TSchema {
  return typeof value === 'object' && value !== null
}
