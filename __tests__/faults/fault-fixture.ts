import { beforeEach } from '@jest/globals';
import type { LockWarning, RedisLockRegistry } from '../../lib';
import type { FaultyProxy } from '../../support/proxy';
import type { RedisAddress } from '../../support/redis';
import { type AnyClient, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry, type TestRegistry } from '../support/test-registry';

type RegistryOptions = Parameters<typeof createRegistry>[1];

/**
 * A server for the tests of the surrounding `describe`, and for each test a proxy in front of it with a registry behind
 * the proxy. The server knows the scripts already, so that a request which is lost is never their NOSCRIPT.
 */
export class FaultFixture {
  readonly #connect: (address: RedisAddress) => Promise<AnyClient>;
  readonly #options: RegistryOptions;
  readonly #redis = PrivateRedis.install();
  #proxy: FaultyProxy | undefined;
  #locks: TestRegistry | undefined;

  /** Registers the hooks that open the fixture. */
  static install(connect: (address: RedisAddress) => Promise<AnyClient>, options: RegistryOptions): FaultFixture {
    const fixture = new FaultFixture(connect, options);
    beforeEach(() => fixture.#openRegistry());
    return fixture;
  }

  private constructor(connect: (address: RedisAddress) => Promise<AnyClient>, options: RegistryOptions) {
    this.#connect = connect;
    this.#options = options;
  }

  /** A connection that does not go through the proxy. */
  get admin(): TestClient {
    return this.#redis.admin;
  }

  get proxy(): FaultyProxy {
    return opened(this.#proxy);
  }

  get registry(): RedisLockRegistry {
    return opened(this.#locks).registry;
  }

  get warnings(): readonly LockWarning[] {
    return opened(this.#locks).warnings;
  }

  /** The name in Redis of the lock of `key`. */
  nameOf(key: string): string {
    return opened(this.#locks).nameOf(key);
  }

  async #openRegistry(): Promise<void> {
    this.#proxy = await this.#redis.proxy();
    this.#locks = createRegistry(await this.#connect(this.#proxy.address), this.#options);
    const lease = await this.#locks.registry.obtain('warm-up').lock();
    await lease.renew();
    await lease.unlock();
  }
}

function opened<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('The fixture is not open yet');
  return part;
}
