/** What a reconcile asks of its queue. A thrown error means: again, with per-key back-off. */
export type Outcome =
  { readonly kind: 'done' } | { readonly kind: 'recheck'; readonly afterMs: number; readonly because: string }

export type Reconcile = (key: string, signal: AbortSignal) => Promise<Outcome>
