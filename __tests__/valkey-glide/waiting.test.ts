import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { GlideClient, Logger } from '@valkey/valkey-glide';
import { type RedisClient, RedisLockRegistry } from '../../lib';
import { fromGlide, type Glide } from '../../lib/valkey-glide';
import { Node } from '../support/node';
import { describePrivate } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { untilQuiet } from '../support/server-load';
import { until } from '../support/until';

/** Longer than a test may take: a waiter that is not notified does not end. */
const NEVER = 600_000;

describePrivate('valkey-glide', () => {
  let node: Node;

  beforeAll(async () => {
    Logger.setLoggerConfig('off'); // it would write every NOSCRIPT to the console
    node = await Node.start();
  });

  afterAll(() => node.stop());

  const connect = () => GlideClient.createClient({ addresses: [{ ...node.address }], requestTimeout: 10_000 });

  it.each(['pub-sub', 'fair'] as const)('wakes a waiter by a message: %s', async (lockType) => {
    const [first, second] = await Promise.all([connect(), connect()]);
    const registryKey = uniqueKey('registry');
    const warnings: unknown[] = [];
    const options = {
      lockType,
      registryKey,
      idleBetweenTries: NEVER / 10,
      expireAfter: NEVER,
      commandTimeout: 60_000,
    };
    const onWarning = (warning: unknown) => void warnings.push(warning);
    const holders = new RedisLockRegistry(fromGlide(first), { ...options, onWarning });
    const waiters = new RedisLockRegistry(fromGlide(second), { ...options, onWarning });
    const admin = await node.admin();
    const channels = () => admin.pubSubChannels(`*${registryKey}*`);
    const connections = async () => (await admin.clientList()).length;
    const before = await connections();
    for (const key of ['one', 'two']) {
      const lease = await holders.obtain(key).lock();
      const waiting = waiters.run(key, () => 'entered');
      await until(async () => (await channels()).some((channel) => channel.includes(key)));
      await untilQuiet(admin);
      await lease.unlock();
      expect(await waiting).toBe('entered');
    }
    await Promise.all([holders.close(), waiters.close()]);
    await until(async () => (await channels()).length === 0 && (await connections()) <= before);
    expect(warnings).toEqual([]);
    for (const client of [first, second]) client.close();
  });

  it('runs scripts that the server does not know, lists locks, and is not closed with the registry', async () => {
    const client = await connect();
    const registry = new RedisLockRegistry(fromGlide(client), { registryKey: uniqueKey() });
    const admin = await node.admin();
    const leases = await Promise.all(['a', 'b', 'c'].map((key) => registry.obtain(key).lock()));
    await admin.scriptFlush();
    const listed: string[] = [];
    for await (const { key } of registry.list({ count: 1 })) listed.push(key);
    expect(listed.sort()).toEqual(['a', 'b', 'c']);
    await Promise.all(leases.map((lease) => lease.renew()));
    await Promise.all(leases.map((lease) => lease.unlock()));
    await registry.close();
    expect(await client.ping()).toBe('PONG');
    client.close();
  });

  it('says that the server refused a key of a wrong type', async () => {
    const client = await connect();
    const registryKey = uniqueKey();
    const registry = new RedisLockRegistry(fromGlide(client), { registryKey });
    await (await node.admin()).lPush(`${registryKey}:key`, 'no lock');
    await expect(registry.obtain('key').lock()).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      cause: { message: expect.stringMatching(/^WRONGTYPE /) },
    });
    await registry.close();
    client.close();
  });

  it('that the application has closed is reported at once, and not after a silence', async () => {
    const client = await connect();
    const registry = new RedisLockRegistry(fromGlide(client), { registryKey: uniqueKey() });
    await registry.run('key', () => undefined);
    client.close();
    await expect(registry.obtain('key').lock()).rejects.toMatchObject({ cause: { name: 'ClientClosedError' } });
  });

  it('is named to who passes a client without the adapter', async () => {
    const client = await connect();
    expect(() => new RedisLockRegistry(client as unknown as RedisClient, { registryKey: 'orders' })).toThrow(
      /a valkey-glide client; wrap it: fromGlide\(client\), the adapter in 'redis-lock-registry\/valkey-glide'/,
    );
    expect(fromGlide(client)).toBe(fromGlide(client));
    expect(() => new RedisLockRegistry(fromGlide(client), { registryKey: 'orders', minReplicas: 1 })).toThrow(
      /minReplicas 1/,
    );
    client.close();
  });
});

describe('fromGlide', () => {
  it.each([
    ['nothing', undefined, /got undefined/],
    ['a URL', 'redis://:secret@localhost', /got a string/],
    ['a configuration', { addresses: [{ host: 'localhost' }] }, /got an options object/],
  ])('refuses %s without quoting it', (_name, value, message) => {
    const make = () => fromGlide(value as unknown as Glide);
    expect(make).toThrow(expect.objectContaining({ name: 'TypeError', message: expect.stringMatching(message) }));
    expect(make).not.toThrow(/secret/);
  });
});
