import { type TestClient, uniqueKey } from './redis';

/**
 * Checks mutual exclusion independently: it counts the callers inside in Redis, over its own connection. It records
 * violations and does not throw, because the code under test might swallow an error.
 */
export class Oracle {
  readonly violations: string[] = [];
  /** Number of sections entered. */
  entered = 0;
  readonly #client: TestClient;
  readonly #inside = uniqueKey('inside');
  #lastToken = 0;

  /** All users of one lock share one oracle, or several oracles with the same `inside` key. */
  constructor(client: TestClient, inside?: string) {
    this.#client = client;
    if (inside) this.#inside = inside;
  }

  /** Runs the body as a section that must not overlap another. */
  async section<T>(body: () => T | PromiseLike<T>): Promise<T> {
    const before = await this.#client.incr(this.#inside);
    this.entered += 1;
    if (before !== 1) this.violations.push(`entered as number ${before}`);
    try {
      return await body();
    } finally {
      const after = await this.#client.decr(this.#inside);
      if (after !== 0) this.violations.push(`left with ${after} still inside`);
    }
  }

  /** A write to a store that checks fencing tokens: each must be greater than the last. */
  write(token: number | undefined): void {
    if (token === undefined || token <= this.#lastToken)
      this.violations.push(`token ${token} after ${this.#lastToken}`);
    else this.#lastToken = token;
  }
}
