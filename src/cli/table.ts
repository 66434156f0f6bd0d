/** A cell: its text, and how it is set off. */
export interface Cell {
  readonly text: string
  readonly paint?: (text: string) => string
}

const gap = '  '
/** A column is not made narrower than this: what is left would tell nothing. */
const narrowest = 8

/**
 * The rows as aligned lines. When they are wider than `width`, the widest columns give way until they fit, and what is
 * cut off ends in `…`. Widths are counted in characters, as names in a cluster are ASCII.
 */
export function tableLines(rows: readonly (readonly Cell[])[], width = Infinity): string[] {
  const widths = fittedWidths(rows, width)
  return rows.map((row) =>
    row
      .map((cell, column) => padded(cell, widths[column] ?? 0))
      .join(gap)
      .trimEnd(),
  )
}

function fittedWidths(rows: readonly (readonly Cell[])[], width: number): number[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]?.text.length ?? 0), 0),
  )
  let surplus = widths.reduce((sum, each) => sum + each, gap.length * (columns - 1)) - width
  while (surplus > 0) {
    const widest = Math.max(...widths)
    if (widest <= narrowest) break
    widths[widths.lastIndexOf(widest)] = widest - 1
    surplus -= 1
  }
  return widths
}

function padded({ text, paint = (same) => same }: Cell, width: number): string {
  const cut = text.length > width ? `${text.slice(0, width - 1)}…` : text
  return paint(cut) + ' '.repeat(width - cut.length)
}
