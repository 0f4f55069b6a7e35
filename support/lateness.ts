/** ms between two measurements. */
const STEP = 5;

/**
 * Measures how late the timers of this process fire. A busy machine may add that much to any time that a test measures
 * meanwhile. Without `ownWork`, the time in which this process itself has used a processor does not count.
 */
export class Lateness {
  #worst = 0;
  #measuredAt = performance.now();
  #workedUntil = process.cpuUsage();
  readonly #countsOwnWork: boolean;
  readonly #timer = setInterval(() => this.#measure(), STEP).unref();

  constructor({ ownWork = true }: { readonly ownWork?: boolean } = {}) {
    this.#countsOwnWork = ownWork;
  }

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
    this.#worst = Math.max(this.#worst, now - this.#measuredAt - STEP - this.#worked());
    this.#measuredAt = now;
  }

  /** ms of work that do not count, since the measurement before. */
  #worked(): number {
    if (this.#countsOwnWork) return 0;
    const { user, system } = process.cpuUsage(this.#workedUntil);
    this.#workedUntil = process.cpuUsage();
    return (user + system) / 1_000;
  }
}
