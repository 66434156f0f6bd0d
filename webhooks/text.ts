/** What kubectl and the API server's audit log are given to show: one line, no surprises for a terminal. */

/** The API server cuts a warning at 256 characters; ours are shorter, so that the cut is ours to place. */
const longestWarning = 255
/** The name of a rule in parentheses at the end of a text: it stays when the rest is cut. */
const ruleAtEnd = / \([a-z-]+\/[a-z-]+\)$/

/**
 * The text without control characters (one would void a whole warning, and a terminal obeys them), without direction
 * marks that make text read as something else, and without halves of surrogate pairs, which are not UTF-8.
 */
export function plainText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, ' ')
    .trim()
}

/** Warnings fit for the response: plain, each under 256 characters and only once, in the order given. */
export function warningTexts(warnings: readonly string[]): string[] {
  return [...new Set(warnings.map((warning) => shortened(plainText(warning), longestWarning)))].filter(
    (warning) => warning !== '',
  )
}

/** The text of a refusal on one line: kubectl shows no more of an Event than its first. */
export function onOneLine(text: string): string {
  return text.replace('\n- ', ' ').replaceAll('\n- ', '; ')
}

/** The text in at most `limit` UTF-16 units; what is cut is cut in front of the rule's name. */
export function shortened(text: string, limit: number): string {
  if (text.length <= limit) return text
  const rule = ruleAtEnd.exec(text)?.[0] ?? ''
  return `${text.slice(0, limit - rule.length - 1).toWellFormed()}…${rule}`
}
