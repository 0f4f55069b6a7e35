import type { ResultWatch } from '../core/backend';
import { clock } from '../internal/clock';

/** The results of `once` in memory, by the names that they have in Redis. */
export class InMemoryResults {
  readonly #kept = new Map<string, { readonly text: string; readonly until: number }>();
  readonly #watching = new Map<string, Set<() => void>>();

  /** `keepFor` in ms. */
  keep(name: string, text: string, keepFor: number): void {
    this.#kept.set(name, { text, until: clock.now() + keepFor });
    for (const wake of [...(this.#watching.get(name) ?? [])]) wake();
  }

  read(name: string): string | undefined {
    const now = clock.now();
    for (const [one, { until }] of this.#kept) if (until <= now) this.#kept.delete(one);
    return this.#kept.get(name)?.text;
  }

  forget(name: string): boolean {
    return this.read(name) !== undefined && this.#kept.delete(name);
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
