import type { ObjectMeta } from '../kube/object.ts'

/** Longest name of a label value, of a DNS label, and so of a Pod that other objects are named after (RFC 1123). */
export const maxLabelLength = 63

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const qualifiedName = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** The server cuts a generateName to 58 characters and adds five. */
const generatedSuffix = 'xxxxx'

/** The name of an object, or one such as the server would choose for its generateName. */
export function nameOf({ name, generateName }: ObjectMeta): string {
  return name || (generateName ? generateName.slice(0, maxLabelLength - generatedSuffix.length) + generatedSuffix : '')
}

/** Lower-case letters, digits and hyphens, not at the ends, 63 at most. */
export function isDnsLabel(name: string): boolean {
  return name.length <= maxLabelLength && dnsLabel.test(name)
}

/** Whether the API server would take `key` for a label or (domain in any case) an annotation. */
export function isMetadataKey(key: string): boolean {
  const parts = key.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length > 2 || name.length > maxLabelLength || !qualifiedName.test(name)) return false
  return parts.length === 1 || ((parts[0] ?? '').length <= 253 && dnsSubdomain.test((parts[0] ?? '').toLowerCase()))
}

/** Whether the API server would take `value` for a label. */
export function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= maxLabelLength && qualifiedName.test(value))
}
