import type { Tenure } from './contender';

interface Entry {
  readonly id: string;
  readonly token: number;
  readonly from: number;
  to: number;
}

/** The model: who was entitled to the lock, and when. It knows nothing of Redis. */
export class Ledger {
  readonly #entries: Entry[] = [];

  record(tenure: Tenure): void {
    if (tenure.event === 'began') {
      this.#entries.push({ id: tenure.id, token: tenure.token, from: tenure.at, to: Number.POSITIVE_INFINITY });
    } else {
      const entry = this.#entries.find(({ id }) => id === tenure.id);
      if (entry !== undefined) entry.to = Math.min(entry.to, tenure.at);
    }
  }

  /** Those of a process that is dead are over. */
  bury(prefix: string, at: number): void {
    for (const entry of this.#entries) if (entry.id.startsWith(prefix)) entry.to = Math.min(entry.to, at);
  }

  /** Whoever is entitled now. */
  get holders(): readonly string[] {
    return this.#entries.filter(({ to }) => to === Number.POSITIVE_INFINITY).map(({ id }) => id);
  }

  get size(): number {
    return this.#entries.length;
  }

  /** What may never be: two that were entitled at one time, and tokens that do not rise. */
  get violations(): string[] {
    const entries = [...this.#entries].sort((a, b) => a.from - b.from);
    return entries.flatMap((entry, i) => {
      const before = entries[i - 1];
      if (before === undefined) return [];
      const [a, b] = [before, entry].map(({ id, token, from, to }) => `${id} (${token}) ${from} to ${to}`);
      return [
        ...(before.to > entry.from ? [`overlap of ${a} and ${b}`] : []),
        ...(before.token >= entry.token ? [`tokens of ${a} and ${b}`] : []),
      ];
    });
  }
}
