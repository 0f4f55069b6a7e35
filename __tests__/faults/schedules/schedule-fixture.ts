import { randomUUID } from 'node:crypto';
import type { RedisLockRegistry } from '../../../lib';
import type { FaultyProxy } from '../../../support/proxy';
import { type AnyClient, clientKinds, connectTo, PrivateRedis } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';
import { Contender, sharedNow } from './contender';
import { KillableContender } from './killable-contender';
import { Ledger } from './ledger';
import { contenderOptions } from './settings';

export type ContenderName = 'client' | 'pool' | 'process';
export const CONTENDERS: readonly ContenderName[] = ['client', 'pool', 'process'];

/** A server with persistence, and three contenders, each behind its own proxy. */
export class ScheduleFixture {
  readonly registryKey = `schedules-${randomUUID()}`;
  readonly admin: TestClient;
  ledger = new Ledger();
  readonly #redis: PrivateRedis;
  readonly #proxies: Record<ContenderName, FaultyProxy>;
  readonly #contenders: Record<'client' | 'pool', Contender>;
  readonly #registries: RedisLockRegistry[] = [];
  #process: KillableContender | undefined;

  static async open(): Promise<ScheduleFixture> {
    const redis = await PrivateRedis.start('--appendonly', 'yes', '--appendfsync', 'always');
    const proxies = { client: await redis.proxy(), pool: await redis.proxy(), process: await redis.proxy() };
    const [client, pool] = [await connectTo(proxies.client.address), await clientKinds['a pool'](proxies.pool.address)];
    return new ScheduleFixture(redis, proxies, await redis.connect(), client, pool);
  }

  private constructor(
    redis: PrivateRedis,
    proxies: Record<ContenderName, FaultyProxy>,
    admin: TestClient,
    client: AnyClient,
    pool: AnyClient,
  ) {
    this.#redis = redis;
    this.#proxies = proxies;
    this.admin = admin;
    this.#contenders = { client: this.#contender('client', client), pool: this.#contender('pool', pool) };
  }

  async contender(name: ContenderName): Promise<Pick<Contender, 'lock' | 'tryLock' | 'abort' | 'renew' | 'unlock'>> {
    if (name !== 'process') return this.#contenders[name];
    this.#process ??= await KillableContender.start(this.#proxies.process.address, this.registryKey, (event) =>
      this.ledger.record(event),
    );
    return this.#process;
  }

  cut(name: ContenderName): void {
    this.#proxies[name].reset();
  }

  async restart(): Promise<void> {
    await this.#redis.kill();
    await this.#redis.revive();
  }

  async killProcess(): Promise<void> {
    const at = sharedNow();
    await this.#process?.kill();
    this.#process = undefined;
    this.ledger.endAll('process', at);
  }

  /** Closes all registries; the server keeps running. */
  async close(): Promise<void> {
    await Promise.all(this.#registries.map((registry) => registry.close({ timeout: 0 })));
  }

  #contender(name: string, client: AnyClient): Contender {
    const { registry } = createRegistry(client, { ...contenderOptions, registryKey: this.registryKey });
    this.#registries.push(registry);
    return new Contender(name, registry, (event) => this.ledger.record(event));
  }
}
