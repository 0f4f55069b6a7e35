import type { LeaseEvent } from './contender';

interface Entry {
  readonly id: string;
  readonly token: number;
  readonly from: number;
  to: number;
}

/** The model: which contender held a lease, and when. It does not use Redis. */
export class Ledger {
  readonly #entries: Entry[] = [];

  record(event: LeaseEvent): void {
    if (event.type === 'began') {
      this.#entries.push({ id: event.id, token: event.token, from: event.at, to: Number.POSITIVE_INFINITY });
    } else {
      const entry = this.#entries.find(({ id }) => id === event.id);
      if (entry !== undefined) entry.to = Math.min(entry.to, event.at);
    }
  }

  /** Ends the leases of a killed process. */
  endAll(prefix: string, at: number): void {
    for (const entry of this.#entries) if (entry.id.startsWith(prefix)) entry.to = Math.min(entry.to, at);
  }

  /** The leases that have not ended. */
  get holders(): readonly string[] {
    return this.#entries.filter(({ to }) => to === Number.POSITIVE_INFINITY).map(({ id }) => id);
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Leases that overlap, and tokens that do not rise. */
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
