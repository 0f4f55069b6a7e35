import { expect, it } from '@jest/globals';
import { block } from '../support/block';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, lossOf } from '../support/test-registry';

const TTL = 100;

describePrivate('the event loop is blocked for longer than the ttl', () => {
  const redis = PrivateRedis.install();

  it.each([true, false])(
    'P5: the lease reports its end in the first statement afterwards (renewed: %s)',
    async (renew) => {
      const { registry, nameOf } = createRegistry(await redis.connect());
      const lock = registry.obtain('key');
      const lease = await lock.lock({ ttl: TTL, renew });
      block(TTL + 20);
      expect(lease.remaining).toBe(0);
      expect(lock.isAcquiredInThisProcess).toBe(false);
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ name: 'LockLostError' }));
      expect(lease.signal.aborted).toBe(true);
      await redis.admin.set(nameOf('key'), 'another');
      await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
      // The cleanup of the lost lease does not touch the key of the next owner.
      await (await registry.obtain('other').lock()).unlock();
      expect(await redis.admin.get(nameOf('key'))).toBe('another');
      await redis.admin.del(nameOf('key'));
    },
  );

  it('P5: a late timer does not renew a lease that has ended, although its key still exists', async () => {
    const { registry, nameOf } = createRegistry(await redis.connect(), { expireAfter: TTL });
    const lease = await registry.obtain('key').lock();
    // The key lives longer in Redis, but the lease has ended in this process.
    await redis.admin.pExpire(nameOf('key'), 60_000);
    block(TTL + 20);
    const { reason } = await lossOf(lease);
    expect(reason).toBe('unconfirmed');
    await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError' });
    expect(lease.remaining).toBe(0);
  });

  it('P3 P5: an acquisition whose reply was read after its ttl is not a lease', async () => {
    const { registry } = createRegistry(await redis.connect());
    await (await registry.obtain('warm-up').lock()).unlock();
    const locking = registry.obtain('key').tryLock({ ttl: TTL });
    const rejected = expect(locking).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    // The request is sent in this turn of the event loop, and the reply waits in the socket's buffer.
    await new Promise(setImmediate);
    block(TTL + 20);
    await rejected;
  });
});
