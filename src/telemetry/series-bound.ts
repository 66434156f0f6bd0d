/** The value that stands for everything beyond a bound. */
export const OTHER = 'other'

/**
 * Keeps the series of one metric few. Users choose the names of namespaces, templates and pools, so whoever may create
 * objects could otherwise grow the process's memory, and the bill of whoever stores its metrics, without limit.
 *
 * The first `limit` distinct combinations pass. In later ones each user-chosen label reads {@link OTHER}, so that
 * nothing goes uncounted and a series, once begun, keeps its meaning.
 */
export class SeriesBound<L extends string> {
  readonly #userChosen: readonly L[]
  readonly #limit: number
  readonly #seen = new Set<string>()

  constructor(userChosen: readonly L[], limit: number) {
    this.#userChosen = userChosen
    this.#limit = limit
  }

  bound(labels: Readonly<Record<L, string>>): Readonly<Record<L, string>> {
    if (this.#userChosen.length === 0) return labels
    const combination = JSON.stringify(this.#userChosen.map((label) => labels[label]))
    if (this.#seen.has(combination)) return labels
    if (this.#seen.size < this.#limit) {
      this.#seen.add(combination)
      return labels
    }
    const bounded: Record<L, string> = { ...labels }
    for (const label of this.#userChosen) bounded[label] = OTHER
    return bounded
  }
}
