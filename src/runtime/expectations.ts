import type { Clock } from './clock.ts'

/** After this long an expectation is no longer believed and a live list must decide: the value Kubernetes' controllers use. */
const expiryMs = 5 * 60_000

interface Pending {
  /** Name of a create → when it was issued, milliseconds since the epoch. */
  readonly creates: Map<string, number>
  /** UID of a delete → when it was issued. */
  readonly deletes: Map<string, number>
}

/** Expectations that a live list must resolve. */
export interface ExpiredExpectations {
  readonly creates: readonly string[]
  readonly deletes: readonly string[]
}

/**
 * Writes that were issued and that the cache does not show yet. Whoever counts objects from a cache counts these too,
 * or a lagging watch makes it create twice.
 *
 * Deciding and recording is one atomic stretch: between reading the cache together with `pendingCreates` and calling
 * `expectCreate` there must be no `await`, and the same for deletes. Record before the request is sent; the watch may
 * be faster than the reply.
 */
export class Expectations {
  readonly #clock: Pick<Clock, 'now'>
  readonly #owners = new Map<string, Pending>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** A create under the chosen `name` is about to be sent, or sent again because its outcome is unknown. */
  expectCreate(owner: string, name: string): void {
    this.#pendingOf(owner).creates.set(name, this.#clock.now())
  }

  /** A delete of the object with this UID is about to be sent. */
  expectDelete(owner: string, uid: string): void {
    this.#pendingOf(owner).deletes.set(uid, this.#clock.now())
  }

  /** The created object was seen, or its create has definitely failed. */
  observeCreate(owner: string, name: string): void {
    this.#owners.get(owner)?.creates.delete(name)
    this.#dropIfEmpty(owner)
  }

  /** The object is gone (also: it was gone already), or its delete has definitely failed. */
  observeDelete(owner: string, uid: string): void {
    this.#owners.get(owner)?.deletes.delete(uid)
    this.#dropIfEmpty(owner)
  }

  /** Names that were created and are not seen yet; a copy. */
  pendingCreates(owner: string): ReadonlySet<string> {
    return new Set(this.#owners.get(owner)?.creates.keys())
  }

  /** UIDs that were deleted and are not seen to be gone yet; a copy. */
  pendingDeletes(owner: string): ReadonlySet<string> {
    return new Set(this.#owners.get(owner)?.deletes.keys())
  }

  /**
   * What has been pending for more than 5 minutes at `now` (milliseconds since the epoch). It stays pending until a live
   * list has told which of them came true and the caller has observed each: expectations are never just forgotten.
   */
  expired(owner: string, now: number): ExpiredExpectations {
    const pending = this.#owners.get(owner)
    return {
      creates: olderThan(pending?.creates, now - expiryMs),
      deletes: olderThan(pending?.deletes, now - expiryMs),
    }
  }

  /** The owner is gone, and what it was waiting for with it. */
  forgetOwner(owner: string): void {
    this.#owners.delete(owner)
  }

  #pendingOf(owner: string): Pending {
    let pending = this.#owners.get(owner)
    if (pending === undefined) {
      pending = { creates: new Map(), deletes: new Map() }
      this.#owners.set(owner, pending)
    }
    return pending
  }

  #dropIfEmpty(owner: string): void {
    const pending = this.#owners.get(owner)
    if (pending?.creates.size === 0 && pending.deletes.size === 0) this.#owners.delete(owner)
  }
}

function olderThan(issued: ReadonlyMap<string, number> | undefined, limit: number): readonly string[] {
  return [...(issued ?? [])].filter(([, at]) => at < limit).map(([id]) => id)
}
