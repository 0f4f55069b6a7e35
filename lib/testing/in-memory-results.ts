import type { ResultKeys, ResultWatch } from '../core/backend';
import { clock } from '../internal/clock';

/** The results of `once` in memory, by the names that they have in Redis. */
export class InMemoryResults {
  readonly #stored = new Map<string, { readonly text: string; readonly until: number }>();
  /** For each result that was forgotten while its lock was held. */
  readonly #marks = new Map<string, string>();
  readonly #watching = new Map<string, Set<() => void>>();

  /** `keepFor` in ms, `mark` as of `begin`. Returns whether it is stored. */
  store(name: string, text: string, keepFor: number, mark: string): boolean {
    if (![undefined, mark].includes(this.#marks.get(name))) return false;
    this.#marks.delete(name);
    this.#stored.set(name, { text, until: clock.now() + keepFor });
    for (const wake of [...(this.#watching.get(name) ?? [])]) wake();
    return true;
  }

  read(name: string): string | undefined {
    const now = clock.now();
    for (const [one, { until }] of this.#stored) if (until <= now) this.#stored.delete(one);
    return this.#stored.get(name)?.text;
  }

  begin(name: string): { readonly text: string | undefined; readonly mark: string } {
    return { text: this.read(name), mark: this.#marks.get(name) ?? '' };
  }

  forget({ result }: ResultKeys, mark: string, isHeld: boolean): boolean {
    if (isHeld) this.#marks.set(result, mark);
    return this.read(result) !== undefined && this.#stored.delete(result);
  }

  watch(name: string): ResultWatch {
    return {
      /** Every result is heard of. */
      pause: Number.POSITIVE_INFINITY,
      on: (wake) => {
        const watching = this.#watching.get(name) ?? new Set();
        this.#watching.set(name, watching.add(wake));
        return () => {
          watching.delete(wake);
          if (watching.size === 0) this.#watching.delete(name);
        };
      },
    };
  }
}
