const windowMs = 60_000
/** Users kept apart. Beyond this the one who has been quiet for longest is forgotten. */
const maxUsers = 10_000

/** Remembers when each user made claims through this replica, for `claims.maxCreatesPerMinute`. */
export class ClaimCreations {
  readonly #timesByUser = new Map<string, number[]>()

  /** Notes one creation at `now`, in milliseconds. */
  record(user: string, now: number): void {
    const times = [...this.#recent(user, now), now]
    // Putting the key in again moves it to the end: the map is ordered by last creation.
    this.#timesByUser.delete(user)
    this.#timesByUser.set(user, times)
    if (this.#timesByUser.size > maxUsers) this.#timesByUser.delete(this.#timesByUser.keys().next().value ?? '')
  }

  /** Creations by `user` within the minute before `now`. */
  lastMinute(user: string, now: number): number {
    return this.#recent(user, now).length
  }

  #recent(user: string, now: number): number[] {
    return (this.#timesByUser.get(user) ?? []).filter((time) => time > now - windowMs)
  }
}
