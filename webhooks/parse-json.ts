export type ParsedJson = { readonly kind: 'value'; readonly value: unknown } | { readonly kind: 'broken' }

/**
 * Whether a key might be `__proto__`, written out or with escapes. Reviews from the API server never escape these
 * letters, so that only odd ones pay for the slower parsing.
 */
const mayNamePrototype = /__proto__|\\u00[567]/i

/**
 * Parses UTF-8 JSON. Members called `__proto__` are dropped: no field of the API is called that, and in copies that
 * assign members one by one such a value would stand in for every field that is unset.
 */
export function parseJson(body: Buffer | string): ParsedJson {
  const text = typeof body === 'string' ? body : body.toString('utf8')
  try {
    return { kind: 'value', value: mayNamePrototype.test(text) ? JSON.parse(text, withoutPrototype) : JSON.parse(text) }
  } catch {
    return { kind: 'broken' }
  }
}

function withoutPrototype(key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value
}
