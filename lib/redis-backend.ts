import type { LockProtocol } from './core/protocol';
import type { LockBackend, LockInspector, ScriptRunner, SharedBackend } from './lock-backend';
import { HeldScripts } from './protocols/held-scripts';
import { LOCK_TYPE_DEFINITIONS } from './protocols/lock-types';
import { type Protocols, RegistryParts } from './protocols/registry-parts';
import { RedisSharedBackend } from './protocols/semaphore-read-write/redis-shared-backend';
import type { RedisClient } from './redis/client';
import type { Connection } from './redis/connection';
import { explainWrongType } from './redis/key-type';
import type { LockNames } from './redis/names';
import { Redis } from './redis/redis';
import { canScan, literally, scan } from './redis/scan';
import type { RedisSettings } from './redis-settings';

/** The locks of one registry in Redis. */
export class RedisBackend implements LockBackend {
  readonly #redis: Redis;
  readonly #parts: RegistryParts;
  readonly #protocols: Protocols;
  readonly heldScripts: ScriptRunner;
  readonly shared: SharedBackend;

  /** Throws `TypeError` with `minReplicas` for a client that cannot have a connection of our own. */
  constructor(client: RedisClient, settings: RedisSettings) {
    this.#redis = new Redis(client, settings.registryKey, settings.commandTimeout, settings);
    this.#parts = new RegistryParts(this.#redis, settings);
    this.#protocols = LOCK_TYPE_DEFINITIONS[settings.lockType](this.#parts);
    this.heldScripts = new HeldScripts(this.#redis, this.#protocols.held);
    this.shared = new RedisSharedBackend(this.#parts);
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

  explainWrongType(error: unknown, { lock }: LockNames, usedAs: string, timeout: number): Promise<unknown> {
    return explainWrongType(error, this.#redis, lock, usedAs, timeout);
  }

  onReconnect(listener: () => void): () => void {
    return this.#redis.monitor.onReconnect(listener);
  }

  async close(): Promise<void> {
    this.#protocols.close?.();
    await this.#parts.close();
    this.#redis.close();
  }
}
