import { type RedisClient, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import type { LockType } from '../../lib/strategies';
import { type Admin, type ClientKind, type ContractClients, createOracleClient } from '../support/client-kinds';
import { Oracle } from '../support/oracle';
import { type TestClient, uniqueKey } from '../support/redis';

type Options = Partial<RedisLockRegistryOptions>;

/** What the contract is tried on: one type of lock through one kind of client. */
export class LockFixture {
  /** Of the registries of the current test. */
  registryKey = '';
  readonly #lockType: LockType;
  readonly #kind: ClientKind;
  readonly #registries: RedisLockRegistry[] = [];
  #contractClients: ContractClients | undefined;
  #oracleClient: TestClient | undefined;

  constructor(lockType: LockType, kind: ClientKind) {
    this.#lockType = lockType;
    this.#kind = kind;
  }

  async open(): Promise<void> {
    this.#contractClients = await this.#kind.open();
    this.#oracleClient = await createOracleClient(this.#kind);
  }

  beginTest(): void {
    this.registryKey = uniqueKey('registry');
  }

  async endTest(): Promise<void> {
    await Promise.all(this.#registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
  }

  async close(): Promise<void> {
    await this.#contractClients?.close();
  }

  /** A registry as of the first process, on the test's own registryKey. */
  registry(options: Options = {}): RedisLockRegistry {
    return this.registryOn(this.clients[0], options);
  }

  /** A registry as of another process. */
  otherRegistry(options: Options = {}): RedisLockRegistry {
    return this.registryOn(this.clients[1], options);
  }

  registryOn(client: RedisClient, options: Options = {}): RedisLockRegistry {
    // That a pool cannot listen is a test of its own.
    const onWarning = () => undefined;
    const defaults = { registryKey: this.registryKey, lockType: this.#lockType, idleBetweenTries: 10, onWarning };
    const registry = new RedisLockRegistry(client, { ...defaults, ...options });
    this.#registries.push(registry);
    return registry;
  }

  get clients(): ContractClients['clients'] {
    return this.#opened.clients;
  }

  get admin(): Admin {
    return this.#opened.admin;
  }

  /** What the lock of `key` is called in Redis. */
  nameOf(key: string): string {
    return `${this.registryKey}:${key}`;
  }

  async isInRedis(key: string): Promise<boolean> {
    return (await this.admin.exists(this.nameOf(key))) === 1;
  }

  /** ms that the lock's key has to live. */
  life(key: string): Promise<number> {
    return this.admin.pTTL(this.nameOf(key));
  }

  oracle(): Oracle {
    return new Oracle(this.oracleClient);
  }

  get oracleClient(): TestClient {
    if (this.#oracleClient === undefined) throw new Error('The fixture is not open');
    return this.#oracleClient;
  }

  get #opened(): ContractClients {
    if (this.#contractClients === undefined) throw new Error('The fixture is not open');
    return this.#contractClients;
  }
}
