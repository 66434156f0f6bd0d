import { quantityForm } from './quantity.ts'

/** Maps whose every value is a quantity: resources of a container, a Pod or a volume, and a runtime's overhead. */
const quantityMaps = new Set(['requests', 'limits', 'overhead'])
/** Single fields that hold a quantity, with the object they stand in. */
const quantityFields = new Set(['emptyDir.sizeLimit', 'resourceFieldRef.divisor'])
/** Selectors: absent selects nothing, `{}` selects everything. */
const meaningfulWhenEmpty = new Set(['labelSelector', 'namespaceSelector', 'selector'])

/**
 * One text for all values that mean the same to Kubernetes: keys in order, null and empty maps and lists left out like
 * absent ones, quantities by value. Two values are semantically equal exactly when their forms are.
 *
 * Revisions are hashed from this text: a change here rolls every SandboxSet once.
 */
export function semanticForm(value: unknown): string {
  return form(value, '', '') ?? 'null'
}

/** `undefined` stands for "as if absent". `key` is where the value stands, `container` the key of what holds it. */
function form(value: unknown, key: string, container: string): string | undefined {
  if (value === null || value === undefined) return undefined
  if (Array.isArray(value)) {
    // Elements keep their place: lists compare by position, so an empty element stays one.
    return value.length === 0 ? undefined : `[${value.map((each) => form(each, key, container) ?? '{}').join()}]`
  }
  if (typeof value === 'object') return objectForm(value, key)
  const isQuantity = quantityMaps.has(container) || quantityFields.has(`${container}.${key}`)
  if (isQuantity && (typeof value === 'string' || typeof value === 'number')) return `"${quantityForm(value)}"`
  return JSON.stringify(value)
}

function objectForm(value: object, key: string): string | undefined {
  const members: string[] = []
  for (const [name, member] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const text = form(member, name, key)
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`)
  }
  return members.length === 0 && !meaningfulWhenEmpty.has(key) ? undefined : `{${members.join()}}`
}
