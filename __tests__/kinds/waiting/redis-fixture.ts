import { afterEach, beforeEach, expect } from '@jest/globals';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis5';
import { type LockWarning, type RedisClient, RedisLockRegistry, type RedisLockRegistryOptions } from '../../../lib';
import type { FaultyProxy } from '../../../support/proxy';
import { SLACK } from '../../contract/timing';
import { connected } from '../../support/connected';
import { machineDelay } from '../../support/machine-delay';
import { createPool } from '../../support/pool';
import { type AnyClient, type ClientOptions, connectTo, PrivateRedis } from '../../support/private-redis';
import { type TestClient, uniqueKey } from '../../support/redis';
import { callsOf, requestsOf, untilQuiet } from '../../support/server-load';
import { until } from '../../support/until';

type Options = Partial<RedisLockRegistryOptions>;

/** The name of a lock in Redis, and the channels on which its release is published. */
export interface Names {
  readonly lock: string;
  readonly channel: string;
  readonly legacyChannel: string;
}

/** Listeners of events that a client has, by event. */
export const listenersOf = (client: TestClient) =>
  Object.fromEntries(client.eventNames().map((event) => [String(event), client.listenerCount(event)]));

/** A private server, the registries and clients of one test, and statistics of the server. */
export class RedisFixture {
  /** The registryKey of the current test. */
  registryKey = '';
  readonly redis: PrivateRedis;
  readonly #ended: (() => Promise<void> | void)[] = [];

  /** Registers the hooks that open the fixture for the tests of the surrounding `describe`. */
  static install(...serverArgs: string[]): RedisFixture {
    const fixture = new RedisFixture(PrivateRedis.install(...serverArgs));
    beforeEach(() => {
      fixture.registryKey = uniqueKey('registry');
    });
    afterEach(() => fixture.#clear());
    return fixture;
  }

  private constructor(redis: PrivateRedis) {
    this.redis = redis;
  }

  async #clear(): Promise<void> {
    // One after the other, and all of them, also after a failure.
    let ending = Promise.resolve();
    for (const end of this.#ended.splice(0).reverse()) ending = ending.finally(end);
    await ending;
  }

  /** An independent connection. */
  get admin(): TestClient {
    return this.redis.admin;
  }

  /** A client for the current test, as of one process. */
  async connect(options: ClientOptions = {}, address = this.redis.address): Promise<TestClient> {
    return this.#destroyed(await connectTo(address, options));
  }

  /** A client of redis 6 with RESP2: after its first SUBSCRIBE it accepts no other commands. */
  connectWithResp2(): Promise<TestClient> {
    // Its type differs in the replies of commands only.
    return connected(this.#destroyed(createClient({ socket: this.redis.address, RESP: 2 }) as unknown as TestClient));
  }

  connectWithRedis5(reconnectStrategy: number | false, address = this.redis.address): Promise<AnyClient> {
    return connected(this.#destroyed(createClient5({ socket: { ...address, reconnectStrategy } })));
  }

  connectPool(): Promise<AnyClient> {
    return connected(this.#destroyed(createPool({ socket: this.redis.address }, { minimum: 2 })));
  }

  /** At the end of the current test. */
  #destroyed<T extends { readonly isOpen: boolean; destroy(): void }>(client: T): T {
    this.#ended.push(() => {
      if (client.isOpen) client.destroy();
    });
    return client;
  }

  /** A user with all rights, changed by the rules. */
  async user(...rules: string[]): Promise<{ username: string; password: string }> {
    const username = uniqueKey('user').replaceAll(':', '-');
    await this.admin.sendCommand(['ACL', 'SETUSER', username, 'on', '>secret', '~*', '&*', '+@all', ...rules]);
    return { username, password: 'secret' };
  }

  /** A proxy in front of the server, and a client through it. */
  async proxied(options: ClientOptions = {}): Promise<{ proxy: FaultyProxy; client: TestClient }> {
    const proxy = await this.redis.proxy();
    return { proxy, client: await this.connect(options, proxy.address) };
  }

  /**
   * A registry as of one process. By default it polls so rarely that a fast acquisition proves a notification.
   */
  registry(client: RedisClient, options: Options = {}): { registry: RedisLockRegistry; warnings: LockWarning[] } {
    const warnings: LockWarning[] = [];
    const registry = new RedisLockRegistry(client, {
      registryKey: this.registryKey,
      lockType: 'pub-sub',
      idleBetweenTries: 2_000,
      onWarning: (warning) => warnings.push(warning),
      ...options,
    });
    this.#ended.push(() => registry.close({ timeout: 0 }));
    return { registry, warnings };
  }

  /** A registry with its own client. */
  async process(options: Options = {}): Promise<{ registry: RedisLockRegistry; warnings: LockWarning[] }> {
    return this.registry(await this.connect(), options);
  }

  namesOf(key: string): Names {
    const lock = `${this.registryKey}:${key}`;
    const legacyChannel = `${this.registryKey}-channel`;
    return { lock, channel: `${legacyChannel}:${lock}`, legacyChannel };
  }

  /** Sets the lock as a Spring client does, or any other owner. */
  async holdAsOther(key: string, ttl = 60_000): Promise<void> {
    await this.admin.set(this.namesOf(key).lock, 'another', { PX: ttl });
  }

  /** Releases what `holdAsOther` set, with a message, as Spring's PUB_SUB_LOCK does. */
  async releaseAsOther(key: string): Promise<void> {
    const { lock, channel } = this.namesOf(key);
    await this.admin.multi().unlink(lock).publish(channel, lock).exec();
  }

  /** The same, and expects that the waiter enters soon. */
  async expectEntryAfterRelease(waiting: Promise<string>, key = 'key'): Promise<void> {
    await this.releaseAsOther(key);
    const released = performance.now();
    expect(await waiting).toBe('entered');
    expect(performance.now() - released).toBeLessThan(SLACK + machineDelay());
  }

  /** A caller that sleeps, with this number of channels, while another owner holds the lock `key`. */
  async waitBehindOther(registry: RedisLockRegistry, channels = 1): Promise<{ readonly waiting: Promise<string> }> {
    await this.holdAsOther('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await this.channels()).length === channels);
    await this.untilIdle();
    return { waiting };
  }

  isHeld(key: string): Promise<boolean> {
    return this.admin.exists(this.namesOf(key).lock).then((count) => count === 1);
  }

  /** Channels of the locks of the current test that have subscribers, without those on which a registry hears itself. */
  async channels(): Promise<string[]> {
    const channels = await this.admin.pubSubChannels(`*${this.registryKey}*`);
    return channels.filter((channel) => !channel.includes(':@')).sort();
  }

  /** Connections that have subscribed to a channel. */
  async listeners(): Promise<number[]> {
    return (await this.admin.clientList({ TYPE: 'PUBSUB' })).map(({ id }) => id);
  }

  /** Connections that the server has accepted since its start. */
  async connections(): Promise<number> {
    return Number(/^total_connections_received:(\d+)/m.exec(await this.admin.info('stats'))?.[1]);
  }

  /** Executions of one command. */
  calls(command: string): Promise<number> {
    return callsOf(this.admin, command);
  }

  /** Attempts that were refused: each asks how long the key of the holder lives. */
  refusals(): Promise<number> {
    return this.calls('pttl');
  }

  /** Requests of all registries to the server. */
  requests(): Promise<number> {
    return requestsOf(this.admin);
  }

  /** Resolves when no registry has sent a request for 80 ms: all waiters are asleep. */
  untilIdle(): Promise<void> {
    return untilQuiet(this.admin);
  }
}
