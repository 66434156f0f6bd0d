import type { KubeObject } from '../kube/object.ts'

type Json = { readonly [key: string]: unknown }

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * What `kubectl apply` of a manifest makes of the object that is stored: mappings are merged, lists replaced, and fields
 * go that the last manifest had and this one has not. Kinds of CustomResourceDefinitions are applied by just that.
 */
export function applied<T extends KubeObject>(stored: T, manifest: T): T {
  return merge(stored as unknown as Json, manifest as unknown as Json, lastManifest(stored)) as unknown as T
}

function lastManifest({ metadata }: KubeObject): Json {
  try {
    return mapping(JSON.parse(metadata.annotations?.[lastApplied] ?? '')) ?? {}
  } catch {
    return {}
  }
}

function merge(stored: Json, manifest: Json, last: Json): Json {
  const dropped = (key: string) => key in last && !(key in manifest)
  const kept = Object.entries(stored).filter(([key]) => !dropped(key))
  const merged = Object.entries(manifest).map(([key, value]): [string, unknown] => {
    const was = mapping(stored[key])
    const is = mapping(value)
    return [key, was && is ? merge(was, is, mapping(last[key]) ?? {}) : value]
  })
  // A null takes a field away.
  return Object.fromEntries([...kept, ...merged].filter(([, value]) => value !== null))
}

function mapping(value: unknown): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined
}
