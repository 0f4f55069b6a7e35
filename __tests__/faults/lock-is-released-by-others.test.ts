import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, lossOf } from '../support/test-registry';
import { until } from '../support/until';

/** ms; much shorter than a third of the ttl, after which a renewal would find out. */
const SOON = 2_000;

describePrivate.each(['pub-sub', 'fair', 'redisson'] as const)('a %s lock is released by others', (lockType) => {
  const redis = PrivateRedis.install();

  /** A holder whose process listens to the channels of the lock, since a caller of it waits. */
  const hold = async (options: { ttl?: number }) => {
    const client = await redis.connect();
    const { registry, registryKey, nameOf } = createRegistry(client, { lockType, expireAfter: 60_000 });
    const lock = registry.obtain('key');
    const other = createRegistry(await redis.connect(), { lockType, registryKey });
    const before = await other.registry.obtain('key').lock();
    const holding = lock.lock(options);
    const name = nameOf('key');
    const channel = lockType === 'redisson' ? `redisson_lock__channel:{${name}}` : `${registryKey}-channel:${name}`;
    await until(async () => (await redis.admin.pubSubNumSub(channel))[channel] === 1);
    await before.unlock();
    const lease = await holding;
    const waiting = lock.lock().then((next) => next.unlock());
    return { lease, waiting, name, publish: () => redis.admin.publish(channel, lockType === 'redisson' ? '0' : name) };
  };

  it.each([{}, { ttl: 60_000 }])('P6: the holder learns it from the message, with %p', async (options) => {
    const { lease, waiting, name, publish } = await hold(options);
    await redis.admin.del(name);
    const begun = performance.now();
    await publish();
    const loss = await lossOf(lease);
    expect(loss.at - begun).toBeLessThan(SOON + machineDelay());
    expect(['expired', 'stolen']).toContain(loss.reason);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
    await waiting;
  });

  it('When a lock is released by others, a message about a release that was none changes nothing', async () => {
    const { lease, waiting, publish } = await hold({});
    await publish();
    await sleep(200);
    lease.assertHeld();
    await lease.unlock();
    await waiting;
  });
});
