/** A token bucket that holds one second's worth. */
export interface Pace {
  readonly tokens: number
  /** When the tokens were counted, in milliseconds since the epoch. */
  readonly at: number
}

export interface Allowance {
  /** Whole creates that are allowed now. */
  readonly creates: number
  /** When one more is allowed, in milliseconds since the epoch. */
  readonly nextAt: number
}

/** The bucket at `now`. A bucket not used before is full. `perSecond` undefined: no limit. */
export function paceAt(pace: Pace | undefined, perSecond: number | undefined, now: number): Pace {
  if (perSecond === undefined) return { tokens: Infinity, at: now }
  // A rate below one a second still has to reach one whole create some day.
  const capacity = Math.max(1, perSecond)
  const before = pace && Number.isFinite(pace.tokens) ? pace : { tokens: capacity, at: now }
  return { tokens: Math.min(capacity, before.tokens + ((now - before.at) * perSecond) / 1000), at: now }
}

/** What the bucket allows, as of the time it was counted at. */
export function allowance({ tokens, at }: Pace, perSecond: number | undefined): Allowance {
  const creates = Math.floor(tokens)
  if (perSecond === undefined) return { creates, nextAt: at }
  return { creates, nextAt: Math.ceil(at + ((creates + 1 - tokens) * 1000) / perSecond) }
}

/** The bucket after `creates` more. */
export function spend({ tokens, at }: Pace, creates: number): Pace {
  return { tokens: tokens - creates, at }
}
