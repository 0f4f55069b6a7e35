import { type TestClient, uniqueKey } from './redis';

/**
 * Judges mutual exclusion from outside: it counts in Redis who is inside, over a connection that no lock uses. What it
 * sees it writes down and does not throw, since the code under test might swallow it.
 */
export class Oracle {
  readonly violations: string[] = [];
  /** Sections that were entered. */
  entered = 0;
  readonly #client: TestClient;
  readonly #inside = uniqueKey('inside');
  #lastToken = 0;

  /** Everyone who wants the same lock shares one oracle, or gives each of several oracles the same `inside` key. */
  constructor(client: TestClient, inside?: string) {
    this.#client = client;
    if (inside) this.#inside = inside;
  }

  /** Runs the body as a section that must be alone. */
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

  /** A store that checks fencing tokens: refuses one that is not above the last. */
  write(token: number | undefined): void {
    if (token === undefined || token <= this.#lastToken)
      this.violations.push(`token ${token} after ${this.#lastToken}`);
    else this.#lastToken = token;
  }
}
