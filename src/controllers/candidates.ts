import type { Sandbox } from '../api/kinds.ts'
import { keyOf } from '../kube/object.ts'
import { PoolStock, type Stock, type Worth } from '../planning/rank-candidates.ts'
import type { Change, Informer } from '../runtime/informer.ts'

/** The pool a sandbox may be handed out from, and what it is worth there; undefined when it is no candidate. */
export type Appraise = (sandbox: Sandbox) => { readonly poolUid: string; readonly worth: Worth } | undefined

/**
 * The sandboxes that claims may take, one stock per pool UID, fed by the informer. A sandbox taken by one claim is
 * invisible to every other until it is given back, so that two claims never meet at the API server.
 */
export class Candidates {
  readonly #appraise: Appraise
  readonly #store: Informer<Sandbox>['store']
  readonly #stocks = new Map<string, PoolStock>()
  readonly #poolOf = new Map<string, string>()
  /** Taken sandboxes by UID, with the version that the adoption gave them once it was answered. */
  readonly #taken = new Map<string, number>()
  readonly #listeners: ((poolUid: string) => void)[] = []

  constructor(sandboxes: Informer<Sandbox>, appraise: Appraise) {
    this.#appraise = appraise
    this.#store = sandboxes.store
    sandboxes.onChange((change) => this.#follow(change))
  }

  /** Calls back for each sandbox that a pool can hand out and could not before. */
  onAvailable(listener: (poolUid: string) => void): void {
    this.#listeners.push(listener)
  }

  /** What the pool would hand out next. */
  best(poolUid: string): Stock {
    return this.#stocks.get(poolUid)?.best() ?? { kind: 'empty' }
  }

  /** True while the sandbox could be handed out by that pool. */
  isCandidate(sandbox: Sandbox, poolUid: string): boolean {
    return !this.#taken.has(uidOf(sandbox)) && this.#appraise(sandbox)?.poolUid === poolUid
  }

  take(sandbox: Sandbox): void {
    this.#hide(uidOf(sandbox), sandbox, Infinity)
  }

  /** The adoption was answered with `sandbox`: older news about it is no longer listened to. */
  adopted(sandbox: Sandbox): void {
    this.#hide(uidOf(sandbox), sandbox, versionOf(sandbox))
  }

  /** The claim did not get it after all: back into stock, as the cache shows it now. */
  giveBack(sandbox: Sandbox): void {
    this.#taken.delete(uidOf(sandbox))
    const current = this.#cached(sandbox)
    if (current) this.#place(current)
  }

  /** Gives back everything that was taken. */
  releaseAll(): void {
    this.#taken.clear()
    this.reappraise(this.#store.values())
  }

  /** Still the pool's, at a version newer than the cache may have: into stock as it was read. */
  refresh(current: Sandbox): void {
    this.#taken.delete(uidOf(current))
    this.#place(current)
  }

  /** Gone, or somebody else's at the version of `current`: older news about it is no longer listened to. */
  drop(sandbox: Sandbox, current: Sandbox | undefined): void {
    const isSame = current?.metadata.uid === sandbox.metadata.uid
    this.#hide(uidOf(sandbox), sandbox, isSame && current ? versionOf(current) : Infinity)
  }

  /** Judges sandboxes again, after something they are judged by has changed. */
  reappraise(sandboxes: Iterable<Sandbox>): void {
    for (const sandbox of sandboxes) this.#place(sandbox)
  }

  #follow(change: Change<Sandbox>): void {
    if (change.kind === 'deleted') {
      this.#taken.delete(uidOf(change.object))
      this.#remove(uidOf(change.object))
      return
    }
    this.#settle(change.object)
    this.#place(change.object)
  }

  /** Out of stock until the cache shows this version, or that it has gone. If the cache has seen it go, nothing is left to hide. */
  #hide(uid: string, sandbox: Sandbox, untilVersion: number): void {
    this.#remove(uid)
    const current = this.#cached(sandbox)
    if (current) this.#taken.set(uid, untilVersion)
    else this.#taken.delete(uid)
    if (current) this.#settle(current)
  }

  #cached(sandbox: Sandbox): Sandbox | undefined {
    const current = this.#store.get(keyOf(sandbox))
    return current?.metadata.uid === sandbox.metadata.uid ? current : undefined
  }

  /** A taken sandbox is remembered until the cache shows it as its claim's. */
  #settle(sandbox: Sandbox): void {
    const adoptedAt = this.#taken.get(uidOf(sandbox))
    if (adoptedAt !== undefined && versionOf(sandbox) >= adoptedAt) this.#taken.delete(uidOf(sandbox))
  }

  #place(sandbox: Sandbox): void {
    const uid = uidOf(sandbox)
    if (this.#taken.has(uid)) return
    const appraisal = this.#appraise(sandbox)
    if (this.#poolOf.get(uid) !== appraisal?.poolUid) this.#remove(uid)
    if (!appraisal) return
    const { poolUid, worth } = appraisal
    const stock = this.#stocks.get(poolUid) ?? new PoolStock()
    this.#stocks.set(poolUid, stock)
    this.#poolOf.set(uid, poolUid)
    if (stock.put({ sandbox, worth })) for (const listener of this.#listeners) listener(poolUid)
  }

  #remove(uid: string): void {
    const poolUid = this.#poolOf.get(uid)
    if (poolUid === undefined) return
    this.#poolOf.delete(uid)
    const stock = this.#stocks.get(poolUid)
    stock?.remove(uid)
    if (stock?.size === 0) this.#stocks.delete(poolUid)
  }
}

function uidOf(sandbox: Sandbox): string {
  return sandbox.metadata.uid ?? ''
}

function versionOf(sandbox: Sandbox): number {
  return Number(sandbox.metadata.resourceVersion ?? 0)
}
