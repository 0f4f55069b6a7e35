import { expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { DISTINCT_TYPES } from '../support/lock-types';
import { machineDelay } from '../support/machine-delay';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { type TestClient, uniqueKey } from '../support/redis';
import { createRegistry, elapsed } from '../support/test-registry';
import { until } from '../support/until';

describePrivate.each(DISTINCT_TYPES)('A registry of %s locks that is closed during an attempt', (lockType) => {
  const redis = PrivateRedis.install();

  const start = async () => {
    const registryKey = uniqueKey('close');
    const proxy = await redis.proxy();
    const client = await connectTo(proxy.address);
    const closing = createRegistry(client, { registryKey, lockType, commandTimeout: 1_000 });
    await closing.registry.run('warm-up', () => undefined);
    const other = createRegistry(await redis.connect(), { registryKey, lockType });
    return { ...closing, registryKey, proxy, client, other: other.registry };
  };

  /** As an application shuts down: `close`, and the end of the client right after it. */
  const shutDown = async (registry: RedisLockRegistry, client: TestClient, meanwhile: () => void): Promise<void> => {
    const closing = registry.close();
    meanwhile();
    await closing;
    client.destroy();
  };

  /** What Redis keeps of these locks, but for the companions of Redisson's locks, which have no end in its format. */
  const leftOf = async (registryKey: string): Promise<string[]> =>
    (await redis.admin.keys(`*${registryKey}*`)).filter((key) => !key.startsWith('redisson_lock_'));

  it.each(['request', 'reply'])(
    'A registry that is closed during an attempt leaves nothing, with the %s of the attempt on its way',
    async (onItsWay) => {
      const { registry, registryKey, proxy, client, nameOf } = await start();
      const direction = onItsWay === 'request' ? proxy.requests : proxy.replies;
      const sent = proxy.requests.bytes;
      direction.hold = true;
      const locking = registry.obtain('key').lock();
      const rejected = expect(locking).rejects.toMatchObject({ name: 'RegistryClosedError' });
      if (onItsWay === 'request') await until(() => proxy.requests.bytes > sent);
      else await until(async () => (await redis.admin.exists(nameOf('key'))) === 1);
      await shutDown(registry, client, () => {
        direction.hold = false;
      });
      await rejected;
      expect(await leftOf(registryKey)).toEqual([]);
    },
  );

  it('A registry that is closed during an attempt waits for the answer of an unlock that is on its way, also with a timeout of 0', async () => {
    const { registry, registryKey, client } = await start();
    const lease = await registry.obtain('key').lock();
    const order: string[] = [];
    const unlocking = lease.unlock().then(() => order.push('unlocked'));
    await registry.close({ timeout: 0 });
    order.push('closed');
    client.destroy();
    await unlocking;
    expect(order).toEqual(['unlocked', 'closed']);
    expect(await leftOf(registryKey)).toEqual([]);
  });

  it('A registry that is closed during an attempt leaves nothing, with a waiter whose next attempt was granted, and the reply on its way', async () => {
    const { registry, registryKey, proxy, client, other, nameOf } = await start();
    const held = await other.obtain('key').lock();
    const answered = proxy.replies.bytes;
    const locking = registry.obtain('key').lock();
    const rejected = expect(locking).rejects.toMatchObject({ name: 'RegistryClosedError' });
    await until(() => proxy.replies.bytes > answered); // it was refused, and waits
    const sent = proxy.requests.bytes;
    proxy.requests.hold = true;
    await until(() => proxy.requests.bytes > sent, { within: 10_000 });
    proxy.replies.hold = true;
    await held.unlock();
    proxy.requests.hold = false;
    await until(async () => (await redis.admin.exists(nameOf('key'))) === 1);
    await shutDown(registry, client, () => {
      proxy.replies.hold = false;
    });
    await rejected;
    expect(await leftOf(registryKey)).toEqual([]);
  });

  it('A registry that is closed during an attempt settles within its bounds, although Redis has fallen silent', async () => {
    const { registry, proxy, client } = await start();
    proxy.blackHole = true;
    const sent = proxy.requests.bytes;
    const locking = registry.obtain('key').lock();
    const rejected = expect(locking).rejects.toMatchObject({ name: 'RegistryClosedError' });
    await until(() => proxy.requests.bytes > sent);
    // The follow-up of the attempt has a command's time, or the time that `close` was given.
    expect(await elapsed(registry.close({ timeout: 500 }))).toBeLessThan(3_000 + machineDelay());
    await rejected;
    client.destroy();
  });
});
