import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, clientKinds, connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, elapsed, lossOf } from '../support/test-registry';
import { until } from '../support/until';

describePrivate('the application ends its client', () => {
  const redis = PrivateRedis.install();

  it.each(CLIENT_KINDS)(
    'P1 P4 P7 P8: %s is destroyed: holders lose their leases, waiters and new callers are rejected',
    async (kind) => {
      const client = await clientKinds[kind](redis.address);
      const { registry, nameOf } = createRegistry(client, { expireAfter: 1_000 });
      const lease = await registry.obtain('key').lock();
      const given = await registry.obtain('given').lock();
      await redis.admin.set(nameOf('taken'), 'another', { PX: 60_000 });
      const waiting = registry.obtain('taken').lock();
      const named = { name: 'CannotAcquireLockError' };
      const waiterRejected = expect(waiting).rejects.toMatchObject(named);
      client.destroy();
      expect(await elapsed(waiting)).toBeLessThan(500 + machineDelay());
      await waiterRejected;
      const locking = registry.obtain('free').lock();
      const rejected = expect(locking).rejects.toMatchObject({ ...named, cause: { message: 'The client is closed' } });
      expect(await elapsed(locking)).toBeLessThan(500 + machineDelay());
      await rejected;
      await expect(given.unlock()).rejects.toMatchObject({ name: 'LockReleaseError' });
      expect((await lossOf(lease)).reason).toBe('unconfirmed');
      await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
      await until(async () => (await redis.admin.exists([nameOf('key'), nameOf('given')])) === 0);
    },
  );

  it('P1 P6 P7: without an offline queue: calls reject while it is disconnected, and work again afterwards', async () => {
    const proxy = await redis.proxy();
    const client = await connectTo(proxy.address, { disableOfflineQueue: true });
    const { registry, nameOf } = createRegistry(client, {
      expireAfter: 1_500,
      commandTimeout: 500,
      unavailableAfter: 600,
    });
    const lease = await registry.obtain('key').lock();
    const given = await registry.obtain('given').lock();
    proxy.refuse();
    proxy.reset();
    await until(() => !client.isReady);
    const trying = registry.obtain('free').tryLock();
    const tryRejected = expect(trying).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      cause: { message: expect.stringContaining('ECONNREFUSED') },
    });
    expect(await elapsed(trying)).toBeLessThan(300 + machineDelay());
    await tryRejected;
    const locking = registry.obtain('free').lock();
    const rejected = expect(locking).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    expect(await elapsed(locking)).toBeLessThan(600 + 400 + machineDelay());
    await rejected;
    expect(lease.signal.aborted).toBe(false);
    const unlocking = given.unlock();
    await proxy.accept();
    await unlocking;
    expect(await redis.admin.exists(nameOf('given'))).toBe(0);
    await until(() => lease.remaining > 1_000, { within: 3_000 });
    expect(lease.signal.aborted).toBe(false);
    await lease.unlock();
  });
});
