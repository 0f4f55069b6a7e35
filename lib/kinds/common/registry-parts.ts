import { randomUUID } from 'node:crypto';
import type { RegistrySettings } from '../../api/options';
import { warn } from '../../api/warnings';
import type { LockInspector } from '../../core/backend';
import type { LockProtocol } from '../../core/protocol';
import type { LockNames } from '../../redis/names';
import { PUBLISH } from '../../redis/proof';
import type { Redis } from '../../redis/redis';
import { Subscriber, type SubscriberOptions } from '../../redis/subscriber';
import { numberIn } from './replies';
import { type Pauses, Pollers } from './shared-with-pollers';

/** One lock type: called once for each registry. */
export type LockTypeDefinition = (parts: RegistryParts) => Protocols;

/** The protocols of one registry. `open` throws `RangeError` if the keys of a lock could not share its hash slot. */
export interface Protocols {
  /** Makes the Lua that finds whether a lock is held: see `leaseScripts`. */
  readonly held: () => string;
  readonly inspector: LockInspector;
  open(names: LockNames): LockProtocol;
  /** Ends timers. */
  close?(): void;
}

/** What is made once for each registry, when the lock type needs it. */
export class RegistryParts {
  readonly redis: Redis;
  readonly settings: RegistrySettings;
  /** Tells what this registry leaves in Redis, and publishes to itself, from that of others. */
  readonly id = randomUUID();
  readonly #subscribers = new Map<boolean, Subscriber>();
  readonly #pauses: Pauses = new Set();
  #hasWarned = false;

  constructor(redis: Redis, settings: RegistrySettings) {
    this.redis = redis;
    this.settings = settings;
  }

  /** One for plain channels, and one for sharded ones: each has a connection. */
  subscriber(isSharded: boolean, orPlain: boolean): Subscriber {
    const known = this.#subscribers.get(isSharded);
    if (known !== undefined) return known;
    const { subscriber: connection, commandTimeout: timeout, onWarning } = this.settings;
    const publish: SubscriberOptions['publish'] = (sharded, channel, message, lock) =>
      this.publish(sharded ? 'SPUBLISH' : 'PUBLISH', channel, message, lock, timeout);
    const isCountable = isSharded || !this.redis.isCluster;
    const options = { connection, isSharded, orPlain, timeout, isCountable, id: this.id, publish, onWarning };
    const subscriber = new Subscriber(this.redis.client, options);
    this.#subscribers.set(isSharded, subscriber);
    return subscriber;
  }

  /** At the server of this lock. Resolves to the connections that got it, as far as that server knows. */
  publish(command: string, channel: string, message: string, lock: string, timeout: number): Promise<number> {
    return this.redis.run(PUBLISH, [lock], [command, channel, message], timeout, (reply) =>
      numberIn(PUBLISH, reply, reply),
    );
  }

  /** For one lock; `undefined`: nobody takes these locks by polling. */
  pollers(usualPaceFor: number): Pollers | undefined {
    const { idleBetweenTries, sharedWithPollers } = this.settings;
    return sharedWithPollers ? new Pollers(idleBetweenTries, usualPaceFor, this.#pauses) : undefined;
  }

  /** Ends pauses and subscriptions. */
  async close(): Promise<void> {
    const subscribers = [...this.#subscribers.values()];
    await Promise.all([...[...this.#pauses].map((end) => end()), ...subscribers.map((one) => one.close())]);
  }

  /** Warns once: without the right to publish, waiters notice a release only when they poll. */
  warnNotificationRefused(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message =
      'The server refused to publish a release: waiters notice it only when they poll. Allow PUBLISH (and SPUBLISH)';
    warn(this.settings.onWarning, { code: 'NOTIFICATION_REFUSED', message });
  }
}
