/** One sandbox that waits to be handed out. */
export interface Queued {
  readonly uid: string
  /** Node it runs on; the empty string while it is not known. */
  readonly node: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/**
 * Candidates in the order they are handed out: from the node that has most of them left, so that claims spread over
 * the nodes, and there the oldest. Adding, removing and looking at the best are O(log n) at most.
 */
export class NodeSpreadQueue<T extends Queued> {
  readonly #members = new Map<string, T>()
  readonly #nodes = new Map<string, AgeHeap<T>>()
  /** Nodes by how many members they have; a count changes by one at a time, so the largest is found in O(1). */
  readonly #nodesByCount = new Map<number, Set<string>>()
  readonly #counts = new Map<string, number>()
  #largest = 0

  get size(): number {
    return this.#members.size
  }

  add(member: T): void {
    this.remove(member.uid)
    this.#members.set(member.uid, member)
    const heap = this.#nodes.get(member.node) ?? new AgeHeap<T>()
    heap.push(member)
    // Members that come and go must not leave the heap full of the departed.
    if (heap.size > 2 * (this.#counts.get(member.node) ?? 0) + 16) heap.keepOnly((item) => this.#isMember(item))
    this.#nodes.set(member.node, heap)
    this.#recount(member.node, +1)
  }

  /** True when the member was there. Its place in the heap is given up lazily, when it comes to the top. */
  remove(uid: string): boolean {
    const member = this.#members.get(uid)
    if (member === undefined) return false
    this.#members.delete(uid)
    this.#recount(member.node, -1)
    return true
  }

  /** The next to hand out; stays in the queue. */
  peek(): T | undefined {
    const [node] = this.#nodesByCount.get(this.#largest) ?? []
    if (node === undefined) return undefined
    return this.#nodes.get(node)?.peek((item) => this.#isMember(item))
  }

  #isMember(item: T): boolean {
    return this.#members.get(item.uid) === item
  }

  #recount(node: string, change: 1 | -1): void {
    const before = this.#counts.get(node) ?? 0
    const after = before + change
    this.#nodesByCount.get(before)?.delete(node)
    if (after === 0) {
      this.#counts.delete(node)
      this.#nodes.delete(node)
    } else {
      this.#counts.set(node, after)
      const peers = this.#nodesByCount.get(after) ?? new Set<string>()
      peers.add(node)
      this.#nodesByCount.set(after, peers)
    }
    if (after > this.#largest) this.#largest = after
    while (this.#largest > 0 && !this.#nodesByCount.get(this.#largest)?.size) {
      this.#nodesByCount.delete(this.#largest)
      this.#largest -= 1
    }
  }
}

/** Binary heap, oldest first, equal ages by UID so that the order is the same everywhere. */
class AgeHeap<T extends Queued> {
  #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  keepOnly(isAlive: (item: T) => boolean): void {
    const alive = this.#items.filter(isAlive)
    this.#items = []
    for (const item of alive) this.push(item)
  }

  push(item: T): void {
    const items = this.#items
    items.push(item)
    let at = items.length - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isOlder(items[at]!, items[parent]!)) break
      swap(items, at, parent)
      at = parent
    }
  }

  /** The oldest item for which `isAlive` holds; dead ones above it are dropped. */
  peek(isAlive: (item: T) => boolean): T | undefined {
    while (this.#items.length > 0 && !isAlive(this.#items[0]!)) this.#dropTop()
    return this.#items[0]
  }

  #dropTop(): void {
    const items = this.#items
    const last = items.pop()!
    if (items.length === 0) return
    items[0] = last
    for (let at = 0; ;) {
      const left = 2 * at + 1
      const right = left + 1
      let oldest = at
      if (left < items.length && isOlder(items[left]!, items[oldest]!)) oldest = left
      if (right < items.length && isOlder(items[right]!, items[oldest]!)) oldest = right
      if (oldest === at) return
      swap(items, at, oldest)
      at = oldest
    }
  }
}

function isOlder(a: Queued, b: Queued): boolean {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.uid < b.uid)
}

function swap<T>(items: T[], a: number, b: number): void {
  const kept = items[a]!
  items[a] = items[b]!
  items[b] = kept
}
