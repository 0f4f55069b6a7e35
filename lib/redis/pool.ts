import { commandsOf, type RedisClient, type RedisCommands } from './client';

/** node-redis' pool, by structure. */
interface Pool extends RedisClient {
  /** Calls back with a client that is free, or as soon as one is. */
  execute(run: (client: RedisClient) => Promise<unknown>): Promise<unknown>;
}

export function isPool(client: RedisClient): client is Pool {
  const { execute, totalClients } = client as { execute?: unknown; totalClients?: unknown };
  return typeof execute === 'function' && typeof totalClients === 'number';
}

/** The commands of a pool. It says nothing of its connections, but its clients do, which the commands are sent over. */
export class PooledCommands implements RedisCommands {
  readonly #pool: Pool;
  /** The clients that the pool has chosen so far, each with what its commands go through. */
  readonly #clients = new Map<RedisClient, RedisCommands>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  readonly eval: RedisCommands['eval'] = (script, options) =>
    this.#pool.execute((client) => this.#over(client).eval(script, options));

  readonly evalSha: RedisCommands['evalSha'] = (sha1, options) =>
    this.#pool.execute((client) => this.#over(client).evalSha(sha1, options));

  /** None of its clients has a connection, as far as they are known. */
  get isDisconnected(): boolean {
    const open = [...this.#clients.keys()].filter(({ isOpen }) => isOpen);
    return open.length > 0 && open.every(({ isReady }) => isReady === false);
  }

  #over(client: RedisClient): RedisCommands {
    const known = this.#clients.get(client);
    if (known !== undefined) return known;
    // The pool destroys those that it does not need for long.
    for (const other of this.#clients.keys()) if (!other.isOpen) this.#clients.delete(other);
    const commands = commandsOf(client);
    this.#clients.set(client, commands);
    return commands;
  }
}
