import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, clientKinds, connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, lossOf, rejection } from '../support/test-registry';
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
      const named = { name: 'CannotAcquireLockError' };
      const waiting = rejection(registry.obtain('taken').lock(), named);
      client.destroy();
      expect(await waiting).toBeLessThan(500 + machineDelay());
      const closed = { ...named, cause: { message: 'The client is closed' } };
      expect(await rejection(registry.obtain('free').lock(), closed)).toBeLessThan(500 + machineDelay());
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
    const named = { name: 'CannotAcquireLockError' };
    const refused = { ...named, cause: { message: expect.stringMatching(/ECONNREFUSED|ECONNRESET|Socket closed/) } };
    expect(await rejection(registry.obtain('free').tryLock(), refused)).toBeLessThan(300 + machineDelay());
    expect(await rejection(registry.obtain('free').lock(), named)).toBeLessThan(600 + 400 + machineDelay());
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
