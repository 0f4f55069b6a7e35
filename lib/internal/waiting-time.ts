/** Since when somebody has waited: sleeps that follow each other within a gap are one wait. Times are on the monotonic clock. */
export class WaitingTime {
  /** When the wait began. */
  since = 0;
  readonly #gap: number;
  #sleepers = 0;
  #endedAt = Number.NEGATIVE_INFINITY;

  /** `gap` in ms. */
  constructor(gap: number) {
    this.#gap = gap;
  }

  get isWaiting(): boolean {
    return this.#sleepers > 0;
  }

  /** One more sleeps, until `end`. Returns whether it is the only one. */
  begin(now: number): boolean {
    if (this.#sleepers++ > 0) return false;
    if (now - this.#endedAt > this.#gap) this.since = now;
    return true;
  }

  /** Returns whether nobody sleeps any more. */
  end(now: number): boolean {
    if (--this.#sleepers > 0) return false;
    this.#endedAt = now;
    return true;
  }

  /** What it was waited for is there: what follows is another wait. */
  over(): void {
    this.#endedAt = Number.NEGATIVE_INFINITY;
  }
}
