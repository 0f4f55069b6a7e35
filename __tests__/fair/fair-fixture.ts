import type { RedisClient, RedisLockRegistry, RedisLockRegistryOptions } from '../../lib';
import { processOf } from '../../lib/protocols/fair/ticket';
import { LockNames } from '../../lib/redis/names';
import { connectTo, PrivateRedis } from '../support/private-redis';
import type { FaultyProxy } from '../support/proxy';
import { type TestClient, uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';
import { KEY } from './worker';

type Options = Omit<RedisLockRegistryOptions, 'registryKey' | 'onWarning' | 'lockType'>;

/** ms of allowed delay, for busy cores and several processes. */
export const SLACK = 500;

/** A registry as of one process, with one proxy for its commands and one for its messages. */
export interface ProxiedProcess {
  readonly registry: RedisLockRegistry;
  readonly client: TestClient;
  readonly subscriber: TestClient;
  readonly commands: FaultyProxy;
  readonly messages: FaultyProxy;
}

/** A private server with a fair lock. */
export class FairFixture {
  readonly redis: PrivateRedis;
  readonly admin: TestClient;
  /** The registryKey of the current test. */
  registryKey = '';

  static async open(...args: string[]): Promise<FairFixture> {
    const redis = await PrivateRedis.start(...args);
    return new FairFixture(redis, await redis.connect());
  }

  private constructor(redis: PrivateRedis, admin: TestClient) {
    this.redis = redis;
    this.admin = admin;
    this.beginTest();
  }

  beginTest(): void {
    this.registryKey = uniqueKey('fair');
  }

  get names(): LockNames {
    return new LockNames(this.registryKey, KEY);
  }

  get queue(): string {
    return this.names.companion('queue');
  }

  get tickets(): string {
    return this.names.companion('tickets');
  }

  /** A registry as of a new process. */
  async process(options: Options = {}): Promise<RedisLockRegistry> {
    return this.on(await this.redis.connect(), options);
  }

  on(client: RedisClient, options: Options = {}): RedisLockRegistry {
    return createRegistry(client, { fencing: true, ...options, registryKey: this.registryKey, lockType: 'fair' })
      .registry;
  }

  async proxied(options: Options = {}): Promise<ProxiedProcess> {
    const [commands, messages] = await Promise.all([this.redis.proxy(), this.redis.proxy()]);
    const [client, subscriber] = await Promise.all([connectTo(commands.address), connectTo(messages.address)]);
    return {
      registry: this.on(client, { ...options, subscriber }),
      client,
      subscriber,
      commands,
      messages,
    };
  }

  /** Waits until the queue has this number of tickets, by default until the processes of all of them can be notified. */
  async queued(tickets: number, notifiedBy: 'message' | 'any' = 'message'): Promise<void> {
    await until(
      async () => {
        const waiting = await this.admin.zRange(this.queue, 0, -1);
        if (waiting.length !== tickets || notifiedBy === 'any') return waiting.length === tickets;
        const fields = await this.admin.hGetAll(this.tickets);
        return waiting.every((ticket) => fields[processOf(ticket)]?.endsWith(`:${notifiedBy}`));
      },
      { within: 10_000 },
    );
  }

  /** Enqueues the callers one after another, in this order. */
  async enqueue<T>(callers: readonly (() => Promise<T>)[]): Promise<Promise<T>[]> {
    const before = await this.admin.zCard(this.queue);
    const waiting: Promise<T>[] = [];
    for (const call of callers) {
      const called = call();
      called.catch(() => undefined);
      waiting.push(called);
      await this.queued(before + waiting.length);
    }
    return waiting;
  }

  /** Keys of this test in Redis, without the fencing counter, whose ttl is a day. */
  async keys(): Promise<string[]> {
    return (await this.admin.keys(`*${this.registryKey}*`)).filter((name) => !name.endsWith(':fence'));
  }
}
