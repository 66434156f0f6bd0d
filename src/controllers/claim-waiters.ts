/** Claims that wait for their pool to have something to hand out, longest waiting first. */
export class ClaimWaiters {
  readonly #byPool = new Map<string, Set<string>>()
  readonly #poolOf = new Map<string, string>()

  /** The claim waits from now on, unless it does already. */
  join(key: string, poolUid: string): void {
    if (this.#poolOf.get(key) === poolUid) return
    this.leave(key)
    this.#poolOf.set(key, poolUid)
    const keys = this.#byPool.get(poolUid)
    if (keys) keys.add(key)
    else this.#byPool.set(poolUid, new Set([key]))
  }

  leave(key: string): void {
    const poolUid = this.#poolOf.get(key)
    if (poolUid === undefined) return
    this.#poolOf.delete(key)
    const keys = this.#byPool.get(poolUid)
    keys?.delete(key)
    if (keys?.size === 0) this.#byPool.delete(poolUid)
  }

  /** Takes the first of the pool's claims out of the line. */
  next(poolUid: string): string | undefined {
    const [key] = this.#byPool.get(poolUid) ?? []
    if (key !== undefined) this.leave(key)
    return key
  }

  clear(): void {
    this.#byPool.clear()
    this.#poolOf.clear()
  }
}
