/** The smallest value that at least this share (0 to 1) of the values does not exceed: the nearest rank, never invented. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new RangeError('there is nothing to take a percentile of')
  const sorted = values.toSorted((a, b) => a - b)
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return sorted[rank - 1] ?? Number.NaN
}

/** The middle value, or the mean of the two in the middle: a run more or less must not favour one side. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('there is nothing to take a median of')
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN
  return (lower + upper) / 2
}
