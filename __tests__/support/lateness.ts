/** ms between two measurements. */
const STEP = 5;

/**
 * Measures how late the timers of this process fire. A busy machine may add that much to any time that a test measures
 * meanwhile.
 */
export class Lateness {
  #worst = 0;
  #measuredAt = performance.now();
  readonly #timer = setInterval(() => this.#measure(), STEP).unref();

  /** The longest delay so far, in ms. */
  get worst(): number {
    this.#measure();
    return this.#worst;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #measure(): void {
    const now = performance.now();
    this.#worst = Math.max(this.#worst, now - this.#measuredAt - STEP);
    this.#measuredAt = now;
  }
}
