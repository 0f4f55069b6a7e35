import { createClient } from 'redis';
import type { Address } from './candidates/candidate';

/** Those of the bench itself. */
const OWN = new Set(['info', 'monitor', 'flushall', 'script', 'keys', 'dump']);

/**
 * Redis counts the calls of each command, but those of scripts together with those of clients. MONITOR tells them apart
 * and costs too much to be on while something is measured; so it is on while a candidate warms up, to learn which part
 * of the calls of each command are a client's: nearly always all or none.
 */
export class CommandSources {
  readonly #address: Address;
  readonly #seen = new Map<string, { clients: number; scripts: number }>();

  constructor(address: Address) {
    this.#address = address;
  }

  /** Watches as long as `during` lasts. */
  async learn(during: () => Promise<void>): Promise<void> {
    const tap = createClient({ socket: { ...this.#address } }).on('error', () => {});
    await tap.connect();
    await tap.monitor((line) => this.#note(String(line)));
    try {
      await during();
    } finally {
      tap.destroy();
    }
  }

  /** Requests of clients between two counts of calls. A command that was never seen is taken for theirs. */
  requests(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): number {
    let sum = 0;
    for (const [name, calls] of after) {
      if (OWN.has(name)) continue;
      const { clients, scripts } = this.#seen.get(name) ?? { clients: 1, scripts: 0 };
      sum += ((calls - (before.get(name) ?? 0)) * clients) / (clients + scripts);
    }
    return sum;
  }

  /** A line reads: 1700000000.123456 [0 127.0.0.1:5000] "SET" "key" …; the source of a script's call is `lua`. */
  #note(line: string): void {
    const [, source, name] = /^\S+ \[\d+ (\S+)\] "([^"]+)"/.exec(line) ?? [];
    if (name === undefined) return;
    const seen = this.#seen.get(name.toLowerCase()) ?? { clients: 0, scripts: 0 };
    seen[source === 'lua' ? 'scripts' : 'clients']++;
    this.#seen.set(name.toLowerCase(), seen);
  }
}
