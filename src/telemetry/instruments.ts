import { Counter, Gauge, Histogram } from 'prom-client'
import type { Registry } from 'prom-client'
import { SeriesBound } from './series-bound.ts'

export type Labels<L extends string> = Readonly<Record<L, string>>

export interface LabelledCounter<L extends string> {
  inc(labels: Labels<L>, by?: number): void
}

export interface LabelledHistogram<L extends string> {
  /** `value` is in the unit that the metric's name or help says. */
  observe(labels: Labels<L>, value: number): void
}

export interface Sample<L extends string> {
  readonly labels: Labels<L>
  readonly value: number
}

/**
 * A gauge that is computed when it is scraped, so that a series disappears together with what it described and nothing
 * has to be kept in step with the caches.
 */
export interface MeasuredGauge<L extends string> {
  /**
   * Adds a source. Samples with the same labels are summed, over all sources. A source that throws fails the scrape:
   * it should only read memory. Returns a function that removes the source.
   */
  measure(source: () => Iterable<Sample<L>>): () => void
}

export interface Instrument<L extends string> {
  readonly name: string
  readonly help: string
  readonly labels: readonly L[]
}

export interface SeriesLimits {
  /** Labels whose values users choose. */
  readonly userChosen: readonly string[]
  /** Combinations of user-chosen values that one counter or gauge keeps apart. */
  readonly series: number
  /** The same for a histogram, where each combination is a series per bucket. */
  readonly histogramSeries: number
}

/** Makes instruments on one registry, each bounded by `limits`. */
export class InstrumentFactory {
  readonly #registry: Registry
  readonly #limits: SeriesLimits

  constructor(registry: Registry, limits: SeriesLimits) {
    this.#registry = registry
    this.#limits = limits
  }

  counter<L extends string>(instrument: Instrument<L>): LabelledCounter<L> {
    const series = this.#bound(instrument, this.#limits.series)
    const counter = new Counter<L>(this.#describe(instrument))
    return { inc: (labels, by = 1) => counter.inc(series.bound(labels), by) }
  }

  histogram<L extends string>(instrument: Instrument<L> & { buckets: number[] }): LabelledHistogram<L> {
    const series = this.#bound(instrument, this.#limits.histogramSeries)
    const histogram = new Histogram<L>({ ...this.#describe(instrument), buckets: instrument.buckets })
    return { observe: (labels, value) => histogram.observe(series.bound(labels), value) }
  }

  gauge<L extends string>(instrument: Instrument<L>): MeasuredGauge<L> {
    const sources = new Set<() => Iterable<Sample<L>>>()
    const gauge: Gauge<L> = new Gauge<L>({
      ...this.#describe(instrument),
      collect: () => {
        gauge.reset()
        // A bound of its own for each scrape: what is gone takes no room from what came after.
        const series = this.#bound(instrument, this.#limits.series)
        for (const source of sources) {
          for (const { labels, value } of source()) gauge.inc(series.bound(labels), value)
        }
      },
    })
    return {
      measure(source) {
        sources.add(source)
        return () => void sources.delete(source)
      },
    }
  }

  #describe<L extends string>(instrument: Instrument<L>) {
    return {
      name: instrument.name,
      help: instrument.help,
      labelNames: instrument.labels,
      registers: [this.#registry],
    }
  }

  #bound<L extends string>(instrument: Instrument<L>, limit: number): SeriesBound<L> {
    const userChosen = instrument.labels.filter((label) => this.#limits.userChosen.includes(label))
    return new SeriesBound(userChosen, limit)
  }
}
