/** ms between two looks at the clock. */
const STEP = 5;

/**
 * Watches how late this process gets its timers: so much may a machine that is busy with other things add to every time
 * that a test measures meanwhile.
 */
export class Lateness {
  #worst = 0;
  #lookedAt = performance.now();
  readonly #timer = setInterval(() => this.#look(), STEP);

  /** ms, since it was made. */
  get worst(): number {
    this.#look();
    return this.#worst;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    this.#worst = Math.max(this.#worst, now - this.#lookedAt - STEP);
    this.#lookedAt = now;
  }
}
