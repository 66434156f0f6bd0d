import { domains } from '../api/vocabulary.ts'

type StringMap = Readonly<Record<string, string>>

/** The domain of a label or annotation key in lower case; empty when it has none. */
export function domainOf(key: string): string {
  const slash = key.indexOf('/')
  return slash < 0 ? '' : key.slice(0, slash).toLowerCase()
}

/** Whether `domain` is `parent` or a subdomain of it. */
export function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`)
}

/** Whether a key lies in a domain whose keys only the controllers write: ours, and those of the kinds we serve. */
export function isReserved(key: string): boolean {
  const domain = domainOf(key)
  return [domains.agents, domains.kruise, domains.sandgate].some((reserved) => isWithin(domain, reserved))
}

/**
 * Whether a key matches an entry of a configured list: a domain with its subdomains, the beginning of a key with a
 * trailing `*`, or a whole key. Case is ignored: the API server accepts annotation domains in any case.
 */
export function matchesEntry(key: string, entry: string): boolean {
  const lower = key.toLowerCase()
  const wanted = entry.toLowerCase()
  if (wanted.endsWith('*')) return lower.startsWith(wanted.slice(0, -1))
  return lower === wanted || isWithin(domainOf(key), wanted)
}

/** The router accepts traffic for every sandbox; a Pod that bears its label would be let through to them all. */
export function isRouterLabel(key: string, value: string): boolean {
  return key.trim().toLowerCase() === 'app' && value.trim().toLowerCase() === 'sandbox-router'
}

export interface KeyChange {
  readonly key: string
  readonly how: 'added' | 'changed' | 'removed'
}

/** How a map of labels or annotations differs from what it was, in the order of the keys. */
export function keyChanges(before: StringMap | undefined, after: StringMap | undefined): KeyChange[] {
  const keys = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].toSorted()
  return keys.flatMap((key): KeyChange[] => {
    const was = before?.[key]
    const is = after?.[key]
    if (was === is) return []
    return [{ key, how: was === undefined ? 'added' : is === undefined ? 'removed' : 'changed' }]
  })
}

/** The path of one key in a map of labels or annotations, quoted as kubectl's JSONPath wants it. */
export function keyPath(map: string, key: string): string {
  return `${map}['${key}']`
}
