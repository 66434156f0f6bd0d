import { namespaces, networkPolicies, pods } from '../api/core.ts'
import { kinds } from '../api/kinds.ts'
import { createValidators, type SchemaProblem } from '../api/validators.ts'
import { apiVersionOf, type KubeObject, type Resource } from '../kube/object.ts'
import { keyPath } from '../policy/keys.ts'

/** Kinds that rules judge, or that tell them something. */
const known: readonly Resource[] = [...kinds, pods, networkPolicies, namespaces]
const validators = createValidators(kinds)

/** The kind that an object is of. Told by group and name: another version is a mistake in it, not someone else's kind. */
export function resourceOf({ apiVersion, kind }: KubeObject): Resource | undefined {
  const group = apiVersion?.includes('/') ? apiVersion.split('/')[0] : ''
  return known.find((resource) => resource.kind === kind && resource.group === group)
}

/** What the API server would object to before it asks the gate. */
export function shapeProblems(resource: Resource, object: KubeObject): SchemaProblem[] {
  const served = apiVersionOf(resource)
  const version =
    object.apiVersion === served
      ? []
      : [{ field: 'apiVersion', message: `must be ${served}, not ${object.apiVersion}` }]
  const kind = kinds.find((each) => each.kind === resource.kind)
  return [...version, ...metadataProblems(object), ...(kind ? validators.problemsOf(kind, object) : [])]
}

function metadataProblems({ metadata }: KubeObject): SchemaProblem[] {
  const fields: readonly [string, unknown][] = [
    ['metadata.name', metadata.name],
    ['metadata.generateName', metadata.generateName],
    ['metadata.namespace', metadata.namespace],
    ...entriesOf('metadata.labels', metadata.labels),
    ...entriesOf('metadata.annotations', metadata.annotations),
  ]
  const wrong = fields.filter(([, value]) => value !== undefined && typeof value !== 'string')
  const isNamed = Boolean(metadata.name ?? metadata.generateName)
  return [
    ...(isNamed ? [] : [{ field: 'metadata.name', message: 'is required' }]),
    // YAML reads unquoted words such as `yes`, `no` and `1.0` as something else than text.
    ...wrong.map(([field, value]) => ({ field, message: `must be a string, not ${JSON.stringify(value)}: quote it` })),
  ]
}

function entriesOf(path: string, map: unknown): [string, unknown][] {
  if (map === undefined || map === null) return []
  if (typeof map !== 'object' || Array.isArray(map)) return [[path, map]]
  return Object.entries(map).map(([key, value]) => [keyPath(path, key), value])
}
