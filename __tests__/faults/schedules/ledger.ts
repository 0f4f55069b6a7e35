import { conflicts, fallingTokens } from '../../../support/judge/exclusion';
import type { LeaseEvent } from './contender';

interface Entry {
  readonly call: string;
  readonly key: string;
  readonly token: number;
  readonly from: number;
  to: number;
}

/** The model: which contender held a lease, and when. It does not use Redis. */
export class Ledger {
  readonly #entries: Entry[] = [];

  record(event: LeaseEvent): void {
    if (event.type === 'began') {
      const { id: call, token, at: from } = event;
      this.#entries.push({ call, key: 'the lock', token, from, to: Number.POSITIVE_INFINITY });
    } else {
      this.endAll(event.id, event.at);
    }
  }

  /** Ends the leases of a process. */
  endAll(prefix: string, at: number): void {
    for (const entry of this.#entries) {
      if (entry.call === prefix || entry.call.startsWith(`${prefix}-`)) entry.to = Math.min(entry.to, at);
    }
  }

  /** The leases that have not ended. */
  get holders(): readonly string[] {
    return this.#entries.filter(({ to }) => to === Number.POSITIVE_INFINITY).map(({ call }) => call);
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Leases that overlap, and tokens that do not rise. */
  get violations(): string[] {
    const overlaps = conflicts(this.#entries).map(({ others, entering }) => ['overlap', ...others, entering]);
    const tokens = fallingTokens(this.#entries).map(({ before, grant }) => ['tokens', before, grant]);
    return [...overlaps, ...tokens].map((violation) => JSON.stringify(violation));
  }
}
