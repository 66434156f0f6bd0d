/** A run of addresses of one family, both ends included. */
export interface AddressRange {
  readonly family: 4 | 6
  readonly first: bigint
  readonly last: bigint
}

/** The addresses of a CIDR block; undefined when it is malformed. */
export function parseCidr(cidr: string): AddressRange | undefined {
  const [address = '', length = ''] = cidr.split('/')
  const parsed = address.includes(':') ? parseIpv6(address) : parseIpv4(address)
  if (!parsed || !/^\d{1,3}$/.test(length)) return undefined
  const bits = parsed.family === 4 ? 32 : 128
  if (Number(length) > bits) return undefined
  const size = 1n << BigInt(bits - Number(length))
  const first = (parsed.value / size) * size
  return { family: parsed.family, first, last: first + size - 1n }
}

/** What is left of `range` without `holes`, in ascending order. */
export function subtract(range: AddressRange, holes: readonly AddressRange[]): AddressRange[] {
  let rest = [range]
  for (const hole of holes) rest = rest.flatMap((part) => subtractOne(part, hole))
  return rest.toSorted((a, b) => (a.first < b.first ? -1 : 1))
}

export function overlaps(a: AddressRange, b: AddressRange): boolean {
  return a.family === b.family && a.first <= b.last && b.first <= a.last
}

/** How many addresses of `space` the ranges cover together, each counted once. */
export function coverage(ranges: readonly AddressRange[], space: AddressRange): bigint {
  const total = space.last - space.first + 1n
  return subtract(space, ranges).reduce((covered, gap) => covered - (gap.last - gap.first + 1n), total)
}

function subtractOne(part: AddressRange, hole: AddressRange): AddressRange[] {
  if (!overlaps(part, hole)) return [part]
  const left = { ...part, last: hole.first - 1n }
  const right = { ...part, first: hole.last + 1n }
  return [left, right].filter(({ first, last }) => first <= last)
}

function parseIpv4(text: string): { family: 4; value: bigint } | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || parts.some((part) => !/^\d{1,3}$/.test(part) || Number(part) > 255)) return undefined
  return { family: 4, value: parts.reduce((value, part) => value * 256n + BigInt(part), 0n) }
}

function parseIpv6(text: string): { family: 6; value: bigint } | undefined {
  const embedded = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text)
  const tail = embedded ? parseIpv4(embedded[2] ?? '') : undefined
  if (embedded && !tail) return undefined
  const hex = tail ? `${embedded?.[1]}${(tail.value >> 16n).toString(16)}:${(tail.value & 0xffffn).toString(16)}` : text
  const [head = '', rest, ...more] = hex.split('::')
  if (more.length > 0) return undefined
  const front = head === '' ? [] : head.split(':')
  const back = rest === undefined || rest === '' ? [] : rest.split(':')
  const missing = 8 - front.length - back.length
  if (rest === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = [...front, ...Array<string>(missing).fill('0'), ...back]
  if (groups.some((group) => !/^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  return { family: 6, value: groups.reduce((value, group) => value * 65536n + BigInt(`0x${group}`), 0n) }
}
