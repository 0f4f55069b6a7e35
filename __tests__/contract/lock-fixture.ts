import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { type RedisClient, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import { traitsOf } from '../../lib/api/lock-types';
import type { LockType } from '../../lib/kinds';
import type { BackedLockRegistry } from '../../lib/registry/backed-lock-registry';
import { type Admin, type ClientKind, type ContractClients, createOracleClient } from '../support/client-kinds';
import { Oracle } from '../support/oracle';
import { type TestClient, uniqueKey } from '../support/redis';

type Options = Partial<RedisLockRegistryOptions>;

/** Registries of one lock type through one kind of client. */
export class LockFixture {
  /** The registryKey of the current test. */
  registryKey = '';
  readonly #lockType: LockType;
  readonly kind: ClientKind;
  readonly #registries: BackedLockRegistry[] = [];
  #contractClients: ContractClients | undefined;
  #oracleClient: TestClient | undefined;

  constructor(lockType: LockType, kind: ClientKind) {
    this.#lockType = lockType;
    this.kind = kind;
  }

  /** Registers the hooks of the surrounding `describe`. */
  installed(): this {
    beforeAll(() => this.#open());
    beforeEach(() => this.beginTest());
    afterEach(() => this.endTest());
    afterAll(() => this.#contractClients?.close());
    return this;
  }

  async #open(): Promise<void> {
    this.#contractClients = await this.kind.open();
    this.#oracleClient = await createOracleClient(this.kind);
  }

  beginTest(): void {
    this.registryKey = uniqueKey('registry');
  }

  async endTest(): Promise<void> {
    await Promise.all(this.#registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
  }

  /** A registry on the first client, as of one process. */
  registry(options: Options = {}): BackedLockRegistry {
    return this.registryOn(this.clients[0], options);
  }

  /** A registry on the second client, as of another process. */
  otherRegistry(options: Options = {}): BackedLockRegistry {
    return this.registryOn(this.clients[1], options);
  }

  registryOn(client: RedisClient, options: Options = {}): BackedLockRegistry {
    // A pool warns that it cannot subscribe; another test covers that.
    const onWarning = () => undefined;
    const defaults = { registryKey: this.registryKey, lockType: this.#lockType, idleBetweenTries: 10, onWarning };
    const all = { ...defaults, ...options };
    const registry = this.kind.registry?.(client, all) ?? new RedisLockRegistry(client, all);
    this.#registries.push(registry);
    return registry;
  }

  /** Another program takes the lock, with a value of its own. */
  async takenByOthers(key: string, token: Buffer): Promise<void> {
    const name = this.nameOf(key);
    const send = (...words: (string | Buffer)[]) => this.admin.send?.(name, words);
    await this.admin.del(name);
    if (traitsOf(this.#lockType).format === 'spring') await send('SET', name, token, 'PX', '60000');
    else {
      await send('HSET', name, token, '1');
      await send('PEXPIRE', name, '60000');
    }
  }

  get clients(): ContractClients['clients'] {
    return this.#opened.clients;
  }

  get admin(): Admin {
    return this.#opened.admin;
  }

  /** The name of the lock of `key` in Redis. */
  nameOf(key: string): string {
    return `${this.registryKey}:${key}`;
  }

  async isInRedis(key: string): Promise<boolean> {
    return (await this.admin.exists(this.nameOf(key))) === 1;
  }

  /** ttl of the lock's key in ms. */
  ttlOf(key: string): Promise<number> {
    return this.admin.pTTL(this.nameOf(key));
  }

  oracle(): Oracle {
    return new Oracle(this.oracleClient);
  }

  get oracleClient(): TestClient {
    if (this.#oracleClient === undefined) throw new Error('The fixture is not open yet');
    return this.#oracleClient;
  }

  get #opened(): ContractClients {
    if (this.#contractClients === undefined) throw new Error('The fixture is not open yet');
    return this.#contractClients;
  }
}
