import type { Sandbox } from '../api/kinds.ts'
import { freshnessJudge } from './freshness.ts'
import { memberState, type MemberState } from './member-state.ts'
import { memberTrouble, type Trouble } from './member-trouble.ts'
import type { Member, PoolView } from './pool-view.ts'

/** A member with everything that is judged of it. */
export interface Appraised extends Member {
  readonly state: MemberState
  readonly isFresh: boolean
  /** Of one that is creating. */
  readonly trouble: Trouble | undefined
}

export type RemovalReason = 'dead' | 'stuck' | 'surplus' | 'stale'

/** The pool's members without those whose delete was issued, each judged. */
export function appraise(view: PoolView): Appraised[] {
  const isFresh = freshnessJudge(view.recipe)
  return view.members
    .filter(({ sandbox }) => !view.issuedDeletes.has(sandbox.metadata.uid ?? ''))
    .map((member) => {
      const state = memberState(member.sandbox)
      return {
        ...member,
        state,
        isFresh: member.isProvable && isFresh(member),
        trouble: state === 'creating' ? memberTrouble(member.sandbox, view.podOf(member.sandbox)) : undefined,
      }
    })
}

/** What goes in this pass, at most a batch of it. */
export class Removals {
  readonly list: { sandbox: Sandbox; because: RemovalReason }[] = []
  readonly #stock: readonly Appraised[]
  readonly #room: number
  readonly #gone = new Map<Appraised, RemovalReason>()
  #isFull = false

  constructor(stock: readonly Appraised[], room: number) {
    this.#stock = stock
    this.#room = room
  }

  add(member: Appraised, because: RemovalReason): void {
    if (this.#gone.has(member)) return
    if (this.list.length >= this.#room) {
      this.#isFull = true
      return
    }
    this.#gone.set(member, because)
    this.list.push({ sandbox: member.sandbox, because })
  }

  reasonOf(member: Appraised): RemovalReason | undefined {
    return this.#gone.get(member)
  }

  /** True when something was turned away. */
  get isFull(): boolean {
    return this.#isFull
  }

  get left(): number {
    return this.#room - this.list.length
  }

  kept(): Appraised[] {
    return this.#gone.size === 0 ? [...this.#stock] : this.#stock.filter((member) => !this.#gone.has(member))
  }
}
