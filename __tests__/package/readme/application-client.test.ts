import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createClient } from 'redis';
import { type LockLostError, RedisLockRegistry } from '../../../lib';
import { InMemoryLockRegistry } from '../../../lib/testing';
import { type RedisServer, startRedis } from '../../../support/redis';
import { connected } from '../../support/connected';
import { describePrivate } from '../../support/private-redis';
import { until } from '../../support/until';

describePrivate('What docs/redis.md says of the application’s own use of its client', () => {
  let server: RedisServer;
  const ends: (() => unknown)[] = [];

  beforeAll(async () => {
    server = await startRedis({ port: true });
  });

  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  afterAll(() => server.stop());

  async function open(options: object = {}) {
    const socket = server.address as { host: string; port: number };
    const client = await connected(createClient({ ...options, socket }));
    ends.push(() => client.destroy());
    return client;
  }

  function registryOf(client: Awaited<ReturnType<typeof open>>, options: object = {}): RedisLockRegistry {
    const registry = new RedisLockRegistry(client, { registryKey: 'shop', onWarning: () => undefined, ...options });
    ends.push(() => registry.close({ timeout: 0 }));
    return registry;
  }

  it('a blocking command on the registry’s client loses a lease, and one on a client of its own lets it be renewed', async () => {
    const [client, other] = [await open(), await open()];
    const lease = await registryOf(client).obtain('other').lock();
    const beside = other.blPop('list', 0);
    await lease.renew();
    await client.rPush('list', 'element');
    await beside;

    const lost = await registryOf(client, { expireAfter: 500 }).obtain('same').lock();
    const before = client.blPop('list', 0);
    await until(() => lost.signal.aborted);
    expect((lost.signal.reason as LockLostError).reason).toBe('unconfirmed');
    await other.rPush('list', 'element');
    await before;
  });

  it.each([
    ['over another client it may be older than the lock', false],
    ['over the connection that writes it never is', true],
  ])('what a holder reads from a client-side cache: %s', async (_what, isSame) => {
    const client = await open();
    const cache = { ttl: 0, maxEntries: 100, evictPolicy: 'LRU' };
    const cached = await open({ RESP: 3, clientSideCache: cache });
    const registry = registryOf(client);
    const writer = isSame ? cached : client;
    await client.set('stock', '0');
    let old = 0;
    for (let turn = 0; turn < 100; turn++) {
      await cached.get('stock');
      const [written, read] = await Promise.all([
        registry.run('stock', () => writer.incr('stock')),
        registry.run('stock', () => cached.get('stock')),
      ]);
      if (Number(read) < written) old++;
    }
    if (isSame) expect(old).toBe(0);
    else expect(old).toBeGreaterThan(0);
  });
});

describe('What docs/frameworks.md says of Promise.race', () => {
  it('a lock() that lost a race has the lock later, and nobody unlocks it; one with a waitTime has not', async () => {
    const registry = new InMemoryLockRegistry();
    const lock = registry.obtain('order:42');
    const first = await lock.lock();
    const raced = lock.lock();
    expect(await Promise.race([raced, Promise.resolve('too late')])).toBe('too late');
    await expect(lock.lock({ waitTime: 0 })).rejects.toMatchObject({ name: 'LockTimeoutError' });
    await first.unlock();
    const leaked = await raced;
    expect(await lock.tryLock()).toBeNull();
    await leaked.unlock();
    await (await lock.lock({ waitTime: 0 })).unlock();
    await registry.close();
  });
});
