import { domains } from '../api/vocabulary.ts'

/** Labels or annotations. */
export type Keys = Record<string, string>
/** The same in a merge patch, where null removes a key. */
export type KeysPatch = Record<string, string | null>

const reservedDomains: readonly string[] = [domains.agents, domains.extensions, domains.sandgate]

/** Keys that only we write. A template or a claim cannot put them on a Pod, whatever admission let through. */
function isReserved(key: string): boolean {
  return reservedDomains.some((domain) => key.startsWith(`${domain}/`))
}

/** The keys of a template's metadata that are carried over to what is made from it. */
export function withoutReserved(metadata: Readonly<Keys> | undefined): Keys {
  return Object.fromEntries(Object.entries(metadata ?? {}).filter(([key]) => !isReserved(key)))
}

/** Records which keys were carried over, so that one the Sandbox loses can be told from one that others added. */
export function keyRecord(annotation: string, carried: Readonly<Keys>): Keys {
  const keys = Object.keys(carried).toSorted()
  return keys.length === 0 ? {} : { [annotation]: keys.join(',') }
}

/** The keys of a record. One that was tampered with must not make us take our own marks off. */
export function recordedKeys(record: string | undefined): string[] {
  return record ? record.split(',').filter((key) => !isReserved(key)) : []
}

/** The merge patch from `present` to `wanted`; of what is not wanted, only `obsolete` keys are removed. */
export function keysPatch(present: Readonly<Keys>, wanted: Readonly<Keys>, obsolete: readonly string[]): KeysPatch {
  const patch: KeysPatch = {}
  for (const key of obsolete) if (Object.hasOwn(present, key) && !Object.hasOwn(wanted, key)) patch[key] = null
  for (const [key, value] of Object.entries(wanted)) if (present[key] !== value) patch[key] = value
  return patch
}

/** The entries of `from` under `keys`, where there are any. */
export function pick(from: Readonly<Keys>, keys: readonly string[]): Keys {
  return Object.fromEntries(keys.flatMap((key) => (from[key] === undefined ? [] : [[key, from[key]]])))
}
