import { expect, it } from '@jest/globals';
import type { RedisClient } from '../../../lib';
import { fromIoredis } from '../../../lib/clients/ioredis';
import type { FaultyProxy } from '../../../support/proxy';
import { ioredisOptions, packageNamed } from '../../support/ioredis-packages';
import { messagesOn } from '../../support/messages';
import { type AnyClient, describePrivate } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { until, WAIT_LIMIT } from '../../support/until';
import { listenersOf, RedisFixture } from './redis-fixture';

/** Calls `made` with every duplicate of the client, before it is connected. */
function onDuplicate<T extends object>(client: { duplicate(...overrides: never[]): T }, made: (copy: T) => void): void {
  const duplicate = client.duplicate.bind(client) as (overrides?: object) => T;
  const spied = (overrides?: object): T => {
    const copy = duplicate(overrides);
    made(copy);
    return copy;
  };
  Object.assign(client, { duplicate: spied });
}

describePrivate('The pub/sub connection of a registry', () => {
  const fixture = RedisFixture.install();

  it('The pub/sub connection of a registry is not opened before a caller waits for another process', async () => {
    const client = await fixture.connect();
    const { registry } = fixture.registry(client);
    const before = await fixture.connections();
    await fixture.holdAsOther('held');
    for (let i = 0; i < 20; i++) await registry.run(`key-${i}`, (lease) => lease.renew());
    expect(await registry.obtain('held').tryLock()).toBeNull();
    // Callers of one process wait for each other in the local queue.
    await Promise.all(Array.from({ length: 20 }, () => registry.run('shared', () => undefined)));
    expect(await fixture.connections()).toBe(before);
    expect(await fixture.listeners()).toEqual([]);
    await registry.close();
    expect(await fixture.connections()).toBe(before);
  });

  it('The pub/sub connection of a registry is opened on the first contended wait, one for any number of keys and callers', async () => {
    const { registry, warnings } = await fixture.process();
    const before = await fixture.connections();
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`);
    for (const key of keys) await fixture.holdAsOther(key);
    const callers = keys.flatMap((key) => [1, 2, 3].map(() => registry.run(key, () => undefined)));
    await until(async () => (await fixture.channels()).length === keys.length);
    expect(await fixture.channels()).toEqual(keys.map((key) => fixture.namesOf(key).channel).sort());
    expect(await fixture.listeners()).toHaveLength(1);
    expect(await fixture.connections()).toBe(before + 1);
    for (const key of keys) await fixture.releaseAsOther(key);
    await Promise.all(callers);
    expect(await fixture.connections()).toBe(before + 1);
    expect(warnings).toEqual([]);
  });

  it('The pub/sub connection of a registry costs fewer than 2 requests a second, and one channel, with 1,000 waiters in each process (P9)', async () => {
    // They poll once in ten of these intervals.
    const processes = await Promise.all([1, 2].map(() => fixture.process({ idleBetweenTries: 100 })));
    await fixture.holdAsOther('key');
    const waiting = processes.flatMap(({ registry }) =>
      Array.from({ length: 1_000 }, () => registry.run('key', () => undefined)),
    );
    await until(async () => (await fixture.listeners()).length === processes.length);
    // The scripts of the mark and of the proof are sent with their texts once.
    const startedAt = performance.now();
    await until(() => performance.now() - startedAt > 600);
    const [before, since] = [await fixture.requests(), performance.now()];
    await until(() => performance.now() - since > 2_500);
    const asked = (await fixture.requests()) - before;
    expect(asked).toBeGreaterThan(0);
    // What falls on the edge counts once more: a poll, a mark, a proof.
    expect(asked / processes.length).toBeLessThan((2 * (performance.now() - since)) / 1_000 + 2);
    expect(await fixture.channels()).toHaveLength(1);
    await fixture.releaseAsOther('key');
    await Promise.all(waiting);
  });

  it('The pub/sub connection of a registry has an error listener, and outlives a socketTimeout of its client', async () => {
    const { registry, warnings } = await fixture.process();
    const client = await fixture.connect();
    const made: TestClient[] = [];
    onDuplicate<TestClient>(client as never, (copy) => made.push(copy));
    // Set after the client has connected, so that it applies to the duplicate only.
    Object.assign(client.options?.socket ?? {}, { socketTimeout: 400 });
    const waiters = fixture.registry(client);
    const lease = await registry.obtain('key').lock();
    const waiting = waiters.registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    const [connection] = await fixture.listeners();
    const idleSince = performance.now();
    await until(() => performance.now() - idleSince > 1_000);
    expect(await fixture.listeners()).toEqual([connection]);
    expect(made[0]?.listenerCount('error')).toBeGreaterThan(0);
    await lease.unlock();
    expect(await waiting).toBe('entered');
    expect([...warnings, ...waiters.warnings]).toEqual([]);
  });

  it('The pub/sub connection of a registry has the socketTimeout of its client: a connection that is silently dead is replaced', async () => {
    const { proxy, client } = await fixture.proxied();
    // Set after the client has connected, so that it applies to the duplicate only.
    Object.assign(client.options?.socket ?? {}, { socketTimeout: 600 });
    const { registry, warnings } = fixture.registry(client);
    // It sleeps: an attempt in the black hole would wait for its answer, and listen no longer.
    const { waiting } = await fixture.waitBehindOther(registry);
    const [dead] = await fixture.listeners();
    const before = proxy.connections;
    proxy.blackHole = true;
    await until(() => proxy.connections > before, { within: 600 + WAIT_LIMIT });
    proxy.blackHole = false;
    await until(async () => (await fixture.listeners()).some((id) => id !== dead), { within: WAIT_LIMIT });
    proxy.reset(); // the server still had the dead one
    await fixture.releaseAsOther('key');
    expect(await waiting).toBe('entered');
    // The registry may have noticed it before the client.
    expect(warnings.every(({ message }) => message.endsWith('does not arrive'))).toBe(true);
  });
});

/** What the test knows of the connection for messages: of node-redis, and of ioredis. */
interface Copy {
  readonly isOpen?: boolean;
  readonly manuallyClosing?: boolean;
}

/** What the application has: an instance, and the client for its registry. */
interface Application {
  readonly client: RedisClient;
  readonly instance: { connect(): Promise<unknown>; duplicate(): Copy };
  close(): unknown;
}

describePrivate('A client that is closed in an outage, and connected again', () => {
  const fixture = RedisFixture.install();

  const ofNodeRedis = (client: AnyClient): Application => ({
    client,
    instance: client as unknown as Application['instance'],
    close: () => client.destroy(),
  });

  const kinds: Record<string, (address: FaultyProxy['address']) => Promise<Application>> = {
    'redis 6': async (address) => ofNodeRedis(await fixture.connect({}, address)),
    'redis 5': async (address) => ofNodeRedis(await fixture.connectWithRedis5(5, address)),
    'ioredis 5': async (address) => {
      const redis = packageNamed('ioredis 5').single({ ...ioredisOptions(address), retryStrategy: () => 5 });
      await until(() => redis.status === 'ready');
      const instance = redis as unknown as Application['instance'];
      return { client: fromIoredis(redis), instance, close: () => redis.disconnect() };
    },
  };

  it.each(Object.keys(kinds))('(%s): its registry listens again', async (kind) => {
    const proxy = await fixture.redis.proxy();
    const application = await (kinds[kind] as (typeof kinds)[string])(proxy.address);
    const copies: Copy[] = [];
    onDuplicate(application.instance, (copy) => copies.push(copy));
    const { registry, warnings } = fixture.registry(application.client);
    const { waiting } = await fixture.waitBehindOther(registry);
    const outcome = waiting.catch(() => 'rejected');
    proxy.refuse();
    proxy.reset();
    application.close();
    await until(() => copies.every(({ isOpen, manuallyClosing }) => isOpen === false || manuallyClosing === true));
    await proxy.accept();
    await application.instance.connect();
    const later = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    await fixture.expectEntryAfterRelease(later);
    await outcome;
    expect(warnings).toEqual([]);
    application.close();
  });
});

describePrivate('A subscriber that the application provides', () => {
  const fixture = RedisFixture.install();

  it.each([2, 3])(
    'A subscriber that the application provides is used in place of a duplicate of the client, and not closed (RESP%s)',
    async (version) => {
      const subscriber = version === 2 ? await fixture.connectWithResp2() : await fixture.connect();
      const { registry, warnings } = fixture.registry(await fixture.connect(), { subscriber });
      const before = { listeners: listenersOf(subscriber), connections: await fixture.connections() };
      const { waiting } = await fixture.waitBehindOther(registry);
      await fixture.expectEntryAfterRelease(waiting);
      expect(await fixture.connections()).toBe(before.connections);
      await registry.close();
      expect(subscriber.isReady).toBe(true);
      expect(await fixture.channels()).toEqual([]);
      expect(listenersOf(subscriber)).toEqual(before.listeners);
      expect(warnings).toEqual([]);
    },
  );

  it('A subscriber that the application provides keeps the subscriptions of the application, on the same channel too', async () => {
    const subscriber = await fixture.connect();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber });
    const { channel, lock } = fixture.namesOf('key');
    const messages = await messagesOn(subscriber, channel);
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => undefined);
    await fixture.untilIdle();
    await fixture.releaseAsOther('key');
    await waiting;
    await registry.close();
    expect(messages).toContain(lock);
    expect(await fixture.admin.publish(channel, 'after the registry')).toBe(1);
    await until(() => messages.includes('after the registry'));
  });
});
