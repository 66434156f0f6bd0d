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
  const [group, version] = String(apiVersion).split('/')
  return known.find((resource) => resource.kind === kind && resource.group === (version === undefined ? '' : group))
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
  const { name, generateName, namespace, labels, annotations } = metadata
  return [
    ...(name || generateName ? [] : [{ field: 'metadata.name', message: 'is required' }]),
    ...textProblems('metadata.name', name),
    ...textProblems('metadata.generateName', generateName),
    ...textProblems('metadata.namespace', namespace),
    ...mapProblems('metadata.labels', labels),
    ...mapProblems('metadata.annotations', annotations),
  ]
}

function mapProblems(field: string, map: unknown): SchemaProblem[] {
  if (map === undefined || map === null) return []
  if (typeof map !== 'object' || Array.isArray(map)) return [{ field, message: 'must be a mapping of keys to text' }]
  return Object.entries(map).flatMap(([key, value]) => textProblems(keyPath(field, key), value))
}

/** YAML reads unquoted words such as `yes`, `no` and `1.0` as something else than text. */
function textProblems(field: string, value: unknown): SchemaProblem[] {
  if (value === undefined || typeof value === 'string') return []
  return [{ field, message: `must be a string, not ${JSON.stringify(value)}: quote it` }]
}
