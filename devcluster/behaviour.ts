/** On a Pod: what the simulated kubelet does with it, for instance `fail` or `delay=500,image-pull-error`. */
export const behaviourAnnotation = 'simulated-kubelet/behaviour'

const outcomes = ['run', 'not-ready', 'pending', 'fail', 'succeed', 'image-pull-error', 'crash-loop'] as const

/** Where a Pod ends up. `pending` is never written: it is what a Pod is that no kubelet has touched. */
export type PodOutcome = (typeof outcomes)[number]

export interface Behaviour {
  readonly outcome: PodOutcome
  /** From being placed on a node to {@link outcome}. */
  readonly startAfterMs: number
  /** From the deletion timestamp to being gone. */
  readonly stopAfterMs: number
}

export const runAtOnce: Behaviour = { outcome: 'run', startAfterMs: 0, stopAfterMs: 0 }

/**
 * Reads `run | not-ready | pending | fail | succeed | image-pull-error | crash-loop`, `delay=<ms>` and
 * `stop-delay=<ms>`, separated by commas; what is not said comes from `base`.
 * @throws RangeError naming the word that is none of these.
 */
export function parseBehaviour(text: string, base: Behaviour): Behaviour {
  const words = text.split(',').map((word) => parseWord(word.trim()))
  return Object.assign({}, base, ...words) as Behaviour
}

function parseWord(word: string): Partial<Behaviour> {
  const outcome = outcomes.find((known) => known === word)
  if (outcome) return { outcome }
  const [, name, ms] = /^(delay|stop-delay)=(\d+)$/.exec(word) ?? []
  if (name === 'delay') return { startAfterMs: Number(ms) }
  if (name === 'stop-delay') return { stopAfterMs: Number(ms) }
  throw new RangeError(`${behaviourAnnotation}: ${word} is none of ${outcomes.join(', ')}, delay=<ms>, stop-delay=<ms>`)
}
