import type { Resource } from './object.ts'

export interface Target {
  namespace?: string | undefined
  name?: string | undefined
  subresource?: string | undefined
}

/** The path of a collection, an object or a subresource, with names escaped; `query` leaves out what is undefined. */
export function requestPath(
  resource: Resource,
  target: Target,
  query: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const group = resource.group === '' ? '/api' : `/apis/${resource.group}`
  let path = `${group}/${resource.version}`
  if (target.namespace) path += `/namespaces/${encodeURIComponent(target.namespace)}`
  path += `/${resource.plural}`
  if (target.name !== undefined) path += `/${encodeURIComponent(target.name)}`
  if (target.subresource) path += `/${target.subresource}`
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.append(name, String(value))
  }
  return parameters.size === 0 ? path : `${path}?${parameters.toString()}`
}
