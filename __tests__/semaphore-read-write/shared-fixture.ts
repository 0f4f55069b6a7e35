import { afterEach, beforeAll, beforeEach } from '@jest/globals';
import { type Lease, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import type { HeldLease } from '../../lib/core/unlock-order';
import { createRealClient, type TestClient, uniqueKey } from '../support/redis';
import { until } from '../support/until';

/** The owner value of a lease in Redis. */
export function ownerOf(lease: Lease): string {
  return (lease as HeldLease).owner;
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

  /** The channel of the lock of `key`. */
  channel(key: string): string {
    return `${this.registryKey}-channel:${this.registryKey}:${key}`;
  }

  /** Names of the keys that are in Redis, without fencing counters. */
  async keys(): Promise<string[]> {
    return (await this.client.keys(`*${this.registryKey}*`)).filter((name) => !name.endsWith(':fence'));
  }
}
