import {
  type DistributedLock,
  type LockType,
  type LockWarning,
  RedisLockRegistry,
  type RedisLockRegistryOptions,
} from '../../../lib';
import { traitsOf } from '../../../lib/api/lock-types';
import type { PrivateRedis } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { until } from '../../support/until';

/** The names that docs/operations.md uses. */
export const REGISTRY_KEY = 'orders';
export const KEY = 'order:42';

const LIMIT = { within: 10_000 };

interface Credentials {
  readonly username?: string;
  readonly password?: string;
}

const plainLockOf = (registry: RedisLockRegistry): DistributedLock => registry.obtain(KEY);

/** Several registries, each with a connection of its own as in processes of their own, contend for one lock. */
export class Contention {
  readonly warnings: LockWarning[] = [];
  readonly #redis: PrivateRedis;
  readonly #options: RedisLockRegistryOptions;
  readonly #user: Credentials;
  readonly #lockOf: (registry: RedisLockRegistry) => DistributedLock;
  readonly #open: { readonly registry: RedisLockRegistry; readonly client: TestClient }[] = [];

  /** For the lock of this type, or for another one of its registries. */
  constructor(redis: PrivateRedis, lockType: LockType, fencing: boolean, user: Credentials = {}, lockOf = plainLockOf) {
    this.#redis = redis;
    this.#user = user;
    this.#lockOf = lockOf;
    this.#options = {
      registryKey: REGISTRY_KEY,
      lockType,
      fencing,
      // A process hands the lock to its own callers as long as it has any, also on a busy machine.
      handOver: 60_000,
      onWarning: (warning) => void this.warnings.push(warning),
    };
  }

  /**
   * Inspects, unlocks by force, acquires, runs a script, keeps the lock for its `minHold`, renews, waits, leaves the queue, hands over within a process and between processes, and releases.
   * `whenWaiting` is called while one registry holds the lock and three wait for it, perhaps more than once.
   */
  async run(whenWaiting: () => Promise<void> = async () => undefined): Promise<void> {
    const [first, second] = [await this.#lock(), await this.#lock()];
    const forced = await first.lock();
    if (!(await second.inspect()).held) throw new Error('The inspection found no holder');
    await second.forceUnlock();
    const loss = await forced.unlock().catch((error) => error);
    if (loss?.reason !== 'expired') throw new Error(`The holder was not notified: ${loss}`);
    const kept = await first.lock({ minHold: 30_000 });
    await kept.eval('return 1');
    await kept.unlock();
    await second.forceUnlock();
    const holder = await first.lock();
    await holder.renew(90_000);
    if ((await second.tryLock()) !== null) throw new Error('The lock has two holders');

    if (this.#options.lockType === 'fair') await this.#leaveOfDeadProcesses();

    const waits = [second.run(() => undefined)];
    await this.#untilWaiting(1);
    waits.push(second.run(() => undefined));
    const leaving = new AbortController();
    const left = (await this.#lock()).run(() => undefined, { signal: leaving.signal });
    await this.#untilWaiting(2);
    waits.push((await this.#lock()).run(() => undefined));
    await this.#untilWaiting(3);
    // A mark ends by itself: on a busy machine perhaps while names are read.
    do {
      await until(() => this.#isMarked(), LIMIT);
      await whenWaiting();
    } while (!(await this.#isMarked()));

    leaving.abort(new Error('It leaves'));
    if ((await left.catch((reason) => reason)) !== leaving.signal.reason) throw new Error('It waited on');
    await holder.unlock();
    await Promise.all(waits);
    // A subscription outlives its last waiter for a moment.
    await until(async () => (await this.#subscribers()) === 0, LIMIT);
  }

  async close(): Promise<void> {
    await Promise.all(this.#open.map(({ registry }) => registry.close({ timeout: 0 })));
    for (const { client } of this.#open) client.destroy();
  }

  async registry(): Promise<RedisLockRegistry> {
    const client = await this.#redis.connect(this.#user);
    const registry = new RedisLockRegistry(client, this.#options);
    this.#open.push({ registry, client });
    return registry;
  }

  async #lock(): Promise<DistributedLock> {
    return this.#lockOf(await this.registry());
  }

  /** As processes that died while they waited leave it. A poll of each waiter follows its subscription, and removes it. */
  async #leaveOfDeadProcesses(): Promise<void> {
    const dead = Array.from({ length: 40 }, (_, process) => [`dead-${process}`, '1:1:poll']).flat();
    await this.#redis.admin.hSet(`{${REGISTRY_KEY}:${KEY}}:tickets`, dead);
  }

  /** Until this many registries wait: those that do not poll have subscribed by then. */
  async #untilWaiting(registries: number): Promise<void> {
    if (traitsOf(this.#options.lockType as LockType).polls) return;
    await until(async () => (await this.#subscribers()) >= registries, LIMIT);
  }

  /** Whether a waiter has left its mark, or is of a type whose waiters leave none. */
  async #isMarked(): Promise<boolean> {
    const { lockType = 'spin' } = this.#options;
    if (this.#lockOf !== plainLockOf || !['pub-sub', 'redisson'].includes(lockType)) return true;
    return (await this.#redis.admin.keys('*:wanted')).length > 0;
  }

  async #subscribers(): Promise<number> {
    const clients = String(await this.#redis.admin.sendCommand(['CLIENT', 'LIST', 'TYPE', 'pubsub']));
    return clients.split('\n').filter((line) => / s?sub=[1-9]/.test(line)).length;
  }
}
