import type { LockBackend, LockInspector, ScriptRunner } from './lock-backend';
import { HeldScripts } from './protocols/held-scripts';
import { createProtocols, heldCheckOf, type Protocols } from './protocols/lock-types';
import type { LockProtocol } from './protocols/protocol';
import type { RedisClient } from './redis/client';
import type { Connection } from './redis/connection';
import type { LockNames } from './redis/names';
import { Redis } from './redis/redis';
import { canScan, literally, scan } from './redis/scan';
import type { RedisSettings } from './redis-settings';

/** The locks of one registry in Redis. */
export class RedisBackend implements LockBackend {
  readonly #redis: Redis;
  readonly #protocols: Protocols;
  readonly heldScripts: ScriptRunner;

  /** Throws `TypeError` with `minReplicas` for a client that cannot have a connection of our own. */
  constructor(client: RedisClient, settings: RedisSettings) {
    this.#redis = new Redis(client, settings.commandTimeout, settings);
    this.#protocols = createProtocols(settings.lockType, this.#redis, settings);
    this.heldScripts = new HeldScripts(this.#redis, heldCheckOf(settings.lockType));
  }

  get connection(): Connection {
    return this.#redis;
  }

  get inspector(): LockInspector {
    return this.#protocols.inspector;
  }

  open(names: LockNames): LockProtocol {
    return this.#protocols.open(names);
  }

  keys(prefix: string, match: string, count: number, timeout: number): AsyncIterable<string[]> {
    const { client } = this.#redis;
    if (!canScan(client)) throw new TypeError('Expected `client` to have the method scan, to list locks');
    return scan(client, literally(prefix) + match, count, timeout);
  }

  onReconnect(listener: () => void): () => void {
    return this.#redis.monitor.onReconnect(listener);
  }

  async close(): Promise<void> {
    await this.#protocols.close();
    this.#redis.close();
  }
}
