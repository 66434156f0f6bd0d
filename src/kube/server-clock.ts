/**
 * Drift of two clocks against each other, as a fraction: the crystals of computers keep within 100 ppm. While NTP slews
 * a clock it goes up to 500 ppm; that shows as a contradiction sooner or later, and the estimate begins anew.
 */
const maxDrift = 100e-6

/**
 * Estimates how far the API server's clock is ahead of ours, from the Date header of its replies.
 *
 * The header counts whole seconds, but each reply proves an interval: the server wrote `date` at some moment between
 * our sending and our receiving, when its clock stood in [date, date + 1 s). Hence the offset lies in
 * (date - received, date + 1 s - sent). The intersection of all intervals, widened by what the clocks may have drifted
 * since, is soon as narrow as the fastest round trip. An interval that contradicts the rest means that a clock was set:
 * the estimate begins anew from it.
 */
export class ServerClock {
  #lowest = -Infinity
  #highest = Infinity
  #updatedAt = 0

  /** Times in ms since the epoch by our clock; a missing or unreadable header teaches nothing. */
  observe(dateHeader: string | undefined, sentAt: number, receivedAt: number): void {
    const date = Date.parse(dateHeader ?? '')
    if (Number.isNaN(date)) return
    const lowest = date - receivedAt
    const highest = date + 1000 - sentAt
    const slack = Math.abs(receivedAt - this.#updatedAt) * maxDrift
    this.#lowest = Math.max(this.#lowest - slack, lowest)
    this.#highest = Math.min(this.#highest + slack, highest)
    this.#updatedAt = receivedAt
    if (this.#lowest > this.#highest) {
      this.#lowest = lowest
      this.#highest = highest
    }
  }

  /**
   * Milliseconds to add to our clock. Exactly 0 while nothing contradicts that the clocks agree (which includes: before
   * the first reply); otherwise the middle of what is possible, at first within half a second of the truth.
   */
  offsetMs(): number {
    if (this.#lowest <= 0 && this.#highest >= 0) return 0
    return Math.round((this.#lowest + this.#highest) / 2)
  }
}
