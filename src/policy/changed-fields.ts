import { canonicalJson } from '../api/hash.ts'

/** Whether two values of any JSON differ; the order of keys does not count. */
export function differ(a: unknown, b: unknown): boolean {
  return canonicalJson(a) !== canonicalJson(b)
}

/** Names of the fields, at the first level, in which an object differs from what it was, in their order. */
export function changedFields(before: object | undefined, after: object | undefined): string[] {
  const was: Record<string, unknown> = { ...before }
  const is: Record<string, unknown> = { ...after }
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])].toSorted()
  return names.filter((name) => differ(was[name], is[name]))
}
