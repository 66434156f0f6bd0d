const pattern = /^([+-]?)(\d*)(?:\.(\d*))?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d{1,2})?$/

/** Quantities are exact to a billionth; Kubernetes rounds anything finer up. */
const nano = 9

const decimalExponents: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}
const binaryPowers: Readonly<Record<string, bigint>> = {
  Ki: 1024n,
  Mi: 1024n ** 2n,
  Gi: 1024n ** 3n,
  Ti: 1024n ** 4n,
  Pi: 1024n ** 5n,
  Ei: 1024n ** 6n,
}

/**
 * One text for all ways to write the same Kubernetes quantity: `"1"`, `1` and `"1000m"` give the same, as do `"1Gi"` and
 * `"1024Mi"`. What is no quantity comes back as it is, as text.
 */
export function quantityForm(quantity: string | number): string {
  const text = String(quantity)
  const [, sign = '', whole = '', fraction = '', suffix = ''] = pattern.exec(text) ?? []
  if (whole === '' && fraction === '') return text
  const binary = binaryPowers[suffix]
  const exponent =
    binary === undefined ? (decimalExponents[suffix] ?? (suffix === '' ? 0 : Number(suffix.slice(1)))) : 0
  const digits = BigInt(whole + fraction) * (binary ?? 1n)
  const shift = nano + exponent - fraction.length
  const billionths = shift >= 0 ? digits * 10n ** BigInt(shift) : roundedUp(digits, 10n ** BigInt(-shift))
  return `${sign === '-' && billionths !== 0n ? '-' : ''}${billionths}n`
}

function roundedUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor
}
