/** One number of a scenario's row. */
export interface Figure {
  /** Unique within its scenario; the key in a {@link Sample}. */
  readonly id: string
  readonly what: string
  readonly unit: Unit
  /** What the product is to reach; absent for references, and for numbers that explain others. */
  readonly toReach?: Bound
  /** Measured beside the product in the same run, without it. */
  readonly isReference?: true
}

/** `×` is a ratio of two numbers of the same sample; the empty string counts things. */
export type Unit = 'ms' | 's' | 'MiB' | '%' | '/s' | '×' | ''

export type Bound = { readonly atMost: number } | { readonly atLeast: number }

/** What one run found, by figure. A figure that this run does not reach (`--quick`) is left out. */
export type Sample = Readonly<Record<string, number>>

export interface BenchContext {
  /** Fewer requests, fewer sandboxes: enough to see that the measuring works. */
  readonly quick: boolean
  /** Tells the person who waits what is going on. */
  readonly say: (line: string) => void
}

/** Something that stands ready to be measured several times. */
export interface Rig {
  measure(): Promise<Sample>
  stop(): Promise<void>
}

export interface Scenario {
  /** What `--only` takes. */
  readonly name: string
  readonly title: string
  readonly figures: readonly Figure[]
  /** How often it is measured unless `--runs` says otherwise. */
  readonly runs: number
  prepare(context: BenchContext): Promise<Rig>
}
