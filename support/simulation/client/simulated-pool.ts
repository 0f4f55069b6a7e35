import { EventEmitter } from 'node:events';
import { ClientClosedError } from 'redis';
import type { Random } from '../../random';
import type { ScriptOptions } from './command';
import type { SimulatedClient } from './simulated-client';

/**
 * node-redis' pool, by what the library needs of it: each command goes over a connection that is idle. One that repeats
 * commands is node-redis' sentinel, which says when it has lost a connection.
 */
export class SimulatedPool extends EventEmitter {
  isOpen = true;
  readonly #clients: readonly SimulatedClient[];
  readonly #random: Random;

  constructor(clients: readonly SimulatedClient[], random: Random, repeats: boolean) {
    super();
    this.#clients = clients;
    this.#random = random;
    if (repeats) for (const client of clients) client.on('error', () => this.emit('client-error'));
  }

  withCommandOptions(): this {
    return this;
  }

  evalSha(sha: string, options?: ScriptOptions): Promise<unknown> {
    return this.#isClosed() ?? this.#idle().evalSha(sha, options);
  }

  eval(script: string, options?: ScriptOptions): Promise<unknown> {
    return this.#isClosed() ?? this.#idle().eval(script, options);
  }

  async connect(): Promise<void> {
    this.isOpen = true;
    await Promise.all(this.#clients.map((client) => client.connect()));
  }

  destroy(): void {
    this.isOpen = false;
    for (const client of this.#clients) if (client.isOpen) client.destroy();
  }

  #isClosed(): Promise<never> | undefined {
    return this.isOpen ? undefined : Promise.reject(new ClientClosedError());
  }

  #idle(): SimulatedClient {
    const least = Math.min(...this.#clients.map(({ pending }) => pending));
    return this.#random.pick(this.#clients.filter(({ pending }) => pending === least));
  }
}
