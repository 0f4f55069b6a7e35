import { afterEach, beforeAll, beforeEach } from '@jest/globals';
import { type DistributedLock, type Lease, RedisLockRegistry, type RedisLockRegistryOptions } from '../../../lib';
import type { InternalLease } from '../../../lib/core/internal-lease';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import { InMemoryLockRegistry, type InMemoryLockRegistryOptions, InMemoryLocks } from '../../../lib/testing';
import { type MonitoredCommand, startMonitor } from '../../support/monitor';
import { createRealClient, type TestClient, uniqueKey } from '../../support/redis';
import { until } from '../../support/until';

/** The owner value of a lease in Redis. */
export function ownerOf(lease: Lease): string {
  return (lease as InternalLease).owner;
}

/** Two registries with the same locks. */
export type Pair = readonly [BackedLockRegistry, BackedLockRegistry];

/** A maker of registries with the same locks in memory; they are closed after each test of the surrounding `describe`. */
export function pairsInMemory(options: InMemoryLockRegistryOptions = {}): (locks?: InMemoryLocks) => Pair {
  const registries: InMemoryLockRegistry[] = [];
  afterEach(async () => {
    await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
  });
  return (locks = new InMemoryLocks()) => {
    const pair = [
      new InMemoryLockRegistry({ ...options, locks }),
      new InMemoryLockRegistry({ ...options, locks }),
    ] as const;
    registries.push(...pair);
    return pair;
  };
}

/** Waits until so many tickets, or more, are in the queue. `lock`: made before, as the call that makes it gives a number. */
export async function queued(lock: DistributedLock, tickets: number): Promise<void> {
  await until(async () => ((await lock.inspect()).waiting ?? 0) >= tickets);
}

/** Registries with one registryKey, each on a client of its own, as of several processes. */
export class SharedFixture {
  client!: TestClient;
  registryKey = '';
  readonly #registries: RedisLockRegistry[] = [];

  /** Registers the hooks of the surrounding `describe`. */
  static install(): SharedFixture {
    const fixture = new SharedFixture();
    beforeAll(async () => {
      fixture.client = await createRealClient();
    });
    beforeEach(() => {
      fixture.registryKey = uniqueKey('shared');
    });
    afterEach(async () => {
      await Promise.all(fixture.#registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
    });
    return fixture;
  }

  async registry(options: Partial<RedisLockRegistryOptions> = {}): Promise<RedisLockRegistry> {
    return this.registryOn(await createRealClient(), options);
  }

  registryOn(client: TestClient, options: Partial<RedisLockRegistryOptions> = {}): RedisLockRegistry {
    const onWarning = () => undefined;
    const registry = new RedisLockRegistry(client, { registryKey: this.registryKey, onWarning, ...options });
    this.#registries.push(registry);
    return registry;
  }

  /** Two registries. */
  async pair(options: Partial<RedisLockRegistryOptions> = {}): Promise<[RedisLockRegistry, RedisLockRegistry]> {
    return [await this.registry(options), await this.registry(options)];
  }

  /** Waits until this many tickets are in the queue. */
  async queued(key: string, tickets: number): Promise<void> {
    const name = `{${this.registryKey}:${key}}:waiters`;
    await until(async () => (await this.client.hKeys(name)).filter((field) => field !== 'permits').length === tickets);
  }

  /** Those that have the lock, without the sums of a semaphore. */
  members(key: string): Promise<string[]> {
    return this.client.zRangeByScore(`${this.registryKey}:${key}`, 1, '+inf');
  }

  /** What the server runs about the locks of this test meanwhile: requests, and commands in scripts (`lua`). */
  async commandsOf(during: () => Promise<unknown>): Promise<MonitoredCommand[]> {
    const monitor = await startMonitor();
    try {
      await during();
      await monitor.settle();
      return monitor.commands.filter(({ args }) => args.some((text) => text.includes(this.registryKey)));
    } finally {
      monitor.stop();
    }
  }

  /** The names of the requests alone. */
  async requestsOf(during: () => Promise<unknown>): Promise<string[]> {
    const commands = await this.commandsOf(during);
    return commands.filter(({ source }) => source !== 'lua').map(({ name }) => name);
  }

  /** The channel of the lock of `key`. */
  channel(key: string): string {
    return `${this.registryKey}-channel:${this.registryKey}:${key}`;
  }

  /** Names of the keys that are in Redis, without fencing counters. */
  async keys(): Promise<string[]> {
    return (await this.client.keys(`*${this.registryKey}*`)).filter((name) => !name.endsWith(':fence'));
  }
}
