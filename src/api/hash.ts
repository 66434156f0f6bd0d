const fnvOffset = 0x811c9dc5
const fnvPrime = 0x01000193
const utf8 = new TextEncoder()

/** FNV-1a, 32 bits, over the UTF-8 bytes, as eight lower-case hex digits: `''` gives `811c9dc5`. */
export function nameHash(text: string): string {
  let hash = fnvOffset
  for (const byte of utf8.encode(text)) hash = Math.imul(hash ^ byte, fnvPrime)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

/** Value of the warm-pool label. The two pool kinds share one label, so a set's name is hashed with its kind. */
export function poolHash(kind: 'SandboxWarmPool' | 'SandboxSet', name: string): string {
  return nameHash(kind === 'SandboxSet' ? `SandboxSet/${name}` : name)
}

/** JSON with sorted keys and without undefined members: the same text for objects that differ only in key order. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}
