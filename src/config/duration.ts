const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 } as const

/** One or more counts with a unit, largest first: `90s`, `1h30m`, `7d`. */
export const durationPattern = '^(?=.)(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?$'

/** Milliseconds of a duration that matches {@link durationPattern}. */
export function durationMs(text: string): number {
  let total = 0
  for (const [, count, unit] of text.matchAll(/(\d+)([dhms])/g))
    total += Number(count) * unitMs[unit as keyof typeof unitMs]
  return total
}
