import type { Oracle } from '../support/oracle';

/** Sections that must not overlap, checked by an oracle, in the order of entry. */
export class Sections {
  readonly entered: string[] = [];
  readonly #oracle: Oracle;

  constructor(oracle: Oracle) {
    this.#oracle = oracle;
  }

  get violations(): readonly string[] {
    return this.#oracle.violations;
  }

  async enter<T>(name: string, body?: () => T | PromiseLike<T>): Promise<T | undefined> {
    return this.#oracle.section(() => {
      this.entered.push(name);
      return body?.();
    });
  }
}
