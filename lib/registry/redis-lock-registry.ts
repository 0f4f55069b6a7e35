import { SHARDED_SUBSCRIPTION_MODES } from '../api/lock-types';
import type { RedisLockRegistryOptions, RegistrySettings, SegmentedLockOptions } from '../api/options';
import { warn } from '../api/warnings';
import type { LockBackend, LockInspector, ScriptRunner, SharedBackend } from '../core/backend';
import type { LockProtocol } from '../core/protocol';
import { boolean, type Check, checkOptions, duration, notNegative, oneOf, wholeNumber } from '../internal/validation';
import { HeldScripts } from '../protocols/held-scripts';
import { LOCK_TYPE_DEFINITIONS } from '../protocols/lock-types';
import { type Protocols, RegistryParts } from '../protocols/registry-parts';
import { sharedBackend } from '../protocols/semaphore-read-write/shared-protocol';
import {
  describeValue,
  describeWrongClient,
  isRedisClient,
  type RedisClient,
  type RedisClientOrFromIoredis,
} from '../redis/client';
import { canScan, scan } from '../redis/cluster';
import type { Connection } from '../redis/connection';
import { explainWrongType } from '../redis/keys';
import { hashTag, type LockNames, literally } from '../redis/names';
import { Redis } from '../redis/redis';
import { isSubscriber } from '../redis/subscriber';
import type { SegmentedLock } from '../segmented/segmented-lock';
import { BackedLockRegistry } from './backed-lock-registry';
import { registryChecks, registrySettings } from './settings';

/**
 * A registry of distributed locks on Redis: hands out one `RedisLock` for each key.
 *
 * Make one for each process and `registryKey`, and inject it. The client stays the caller's: it is neither closed
 * nor changed, and it must be connected, or be about to be, when locks are taken.
 * @example
 * const registry = new RedisLockRegistry(client, { registryKey: 'orders', lockType: 'pub-sub' });
 * await registry.run('order:42', () => ship(order));
 */
export class RedisLockRegistry extends BackedLockRegistry {
  /**
   * @throws TypeError when an option is unknown or has a wrong type, or the client has no `eval` and `evalSha`, or no
   *   `duplicate` for `minReplicas`.
   * @throws RangeError when an option is out of range.
   */
  constructor(client: RedisClientOrFromIoredis, options: RedisLockRegistryOptions) {
    if (!isRedisClient(client)) throw new TypeError(describeWrongClient(client));
    checkOptions(CHECKS, options);
    const settings = registrySettings(options, 'spin');
    super(settings, new RedisBackend(client, settings));
  }

  override segmented(key: string, options: SegmentedLockOptions): SegmentedLock {
    const { registryKey, onWarning } = this.settings;
    if (hashTag(registryKey) !== undefined) {
      const message = `The hash tag in registryKey "${registryKey}" puts all segments of "${key}" into one slot of a cluster`;
      warn(onWarning, { code: 'SEGMENTS_SHARE_SLOT', message, key });
    }
    return super.segmented(key, options);
  }
}

const CHECKS: Record<keyof RedisLockRegistryOptions, Check<unknown>> = {
  ...registryChecks,
  idleBetweenTries: duration,
  handOver: notNegative,
  sharedWithPollers: boolean,
  legacyChannel: boolean,
  shardedSubscriptionMode: oneOf(SHARDED_SUBSCRIPTION_MODES),
  fairLockWaitTimeout: duration,
  minReplicas: (name, value) => wholeNumber(name, value, 0),
  replicaTimeout: duration,
  subscriber,
};

function subscriber(name: string, value: unknown): void {
  if (isSubscriber(value)) return;
  const expectation = `Expected \`${name}\` to be a client with the methods subscribe and unsubscribe`;
  throw new TypeError(`${expectation}, got ${describeValue(value)}`);
}

/** The locks of one registry in Redis. */
class RedisBackend implements LockBackend {
  readonly heldScripts: ScriptRunner;
  readonly inspector: LockInspector;
  readonly shared: SharedBackend;
  readonly #redis: Redis;
  readonly #parts: RegistryParts;
  readonly #protocols: Protocols;

  /** Throws `TypeError` with `minReplicas` for a client that cannot have a connection of our own. */
  constructor(client: RedisClient, settings: RegistrySettings) {
    this.#redis = new Redis(client, settings.registryKey, settings.commandTimeout, settings);
    this.#parts = new RegistryParts(this.#redis, settings);
    this.#protocols = LOCK_TYPE_DEFINITIONS[settings.lockType](this.#parts);
    this.heldScripts = new HeldScripts(this.#redis, this.#protocols.held);
    this.inspector = this.#protocols.inspector;
    this.shared = sharedBackend(this.#parts);
  }

  get connection(): Connection {
    return this.#redis;
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
