/** The pauses between tries that failed: doubled from the first to the longest. */
export class Backoff {
  #next: number;
  readonly #first: number;
  readonly #longest: number;

  /** In ms. */
  constructor(first = 10, longest = 250) {
    this.#first = first;
    this.#longest = longest;
    this.#next = first;
  }

  /** ms until the next try. */
  next(): number {
    const pause = this.#next;
    this.#next = Math.min(2 * pause, this.#longest);
    return pause;
  }

  /** A try succeeded. */
  reset(): void {
    this.#next = this.#first;
  }
}
