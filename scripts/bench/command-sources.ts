import { createClient } from 'redis';
import type { Address } from './candidates/candidate';

/** Commands of the bench itself. */
const OWN = new Set(['info', 'monitor', 'flushall', 'script', 'keys', 'dump']);

/**
 * Redis counts the calls of each command, of scripts and clients together. MONITOR distinguishes them but is too slow to
 * run during a measurement. So it runs while a candidate warms up and determines which share of the calls of each command
 * is sent by clients: nearly always all or none.
 */
export class CommandSources {
  readonly #address: Address;
  readonly #calls = new Map<string, { clients: number; scripts: number }>();

  constructor(address: Address) {
    this.#address = address;
  }

  /** Runs MONITOR until `during` settles. */
  async monitor(during: () => Promise<void>): Promise<void> {
    const client = createClient({ socket: { ...this.#address } }).on('error', () => {});
    await client.connect();
    await client.monitor((line) => this.#record(String(line)));
    try {
      await during();
    } finally {
      client.destroy();
    }
  }

  /** Client requests between two counts. A command that MONITOR has not shown counts as a client's. */
  requests(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): number {
    let sum = 0;
    for (const [name, calls] of after) {
      if (OWN.has(name)) continue;
      const { clients, scripts } = this.#calls.get(name) ?? { clients: 1, scripts: 0 };
      sum += ((calls - (before.get(name) ?? 0)) * clients) / (clients + scripts);
    }
    return sum;
  }

  /** A line reads: 1700000000.123456 [0 127.0.0.1:5000] "SET" "key" …; the source of a call in a script is `lua`. */
  #record(line: string): void {
    const [, source, name] = /^\S+ \[\d+ (\S+)\] "([^"]+)"/.exec(line) ?? [];
    if (name === undefined) return;
    const calls = this.#calls.get(name.toLowerCase()) ?? { clients: 0, scripts: 0 };
    calls[source === 'lua' ? 'scripts' : 'clients']++;
    this.#calls.set(name.toLowerCase(), calls);
  }
}
