import { expect, it } from '@jest/globals';
import { Lateness } from '../support/lateness';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, elapsed, lossOf } from '../support/witness';

const TTL = 2_000;

// An unhandled rejection anywhere in this file, also one that is handled late, fails it: see the test environment.
describePrivate('the server is killed right after an acquisition', () => {
  it.concurrent.each(CLIENT_KINDS)('P4 P8: the signal of %s fires within ttl + 50 ms', async (kind) => {
    const redis = await PrivateRedis.start();
    const { registry } = createRegistry(await clientKinds[kind](redis.address), {
      expireAfter: TTL,
      commandTimeout: 500,
      unavailableAfter: 1_000,
    });
    const startedAt = performance.now();
    const lateness = new Lateness();
    const leases = [
      await registry.obtain('renewed').lock(),
      await registry.obtain('fixed').lock({ ttl: TTL }),
      await registry.obtain('given back').lock(),
    ];
    await redis.kill();
    const [renewed, fixed] = await Promise.all(leases.slice(0, 2).map(lossOf));
    expect(renewed?.reason).toBe('unconfirmed');
    expect(fixed?.reason).toBe('expired');
    for (const { at } of [renewed, fixed] as { at: number }[]) {
      expect(at - startedAt).toBeGreaterThan(TTL - 20);
      expect(at - startedAt).toBeLessThanOrEqual(TTL + 50 + lateness.worst);
    }
    for (const lease of leases.slice(0, 2)) {
      expect(lease.remaining).toBe(0);
      const unlocking = lease.unlock();
      const rejected = expect(unlocking).rejects.toMatchObject({ name: 'LockLostError' });
      expect(await elapsed(unlocking)).toBeLessThan(200 + lateness.worst);
      await rejected;
    }
    const locking = registry.obtain('another').lock();
    const rejected = expect(locking).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    expect(await elapsed(locking)).toBeLessThan(1_000 + 300 + lateness.worst);
    await rejected;
    lateness.stop();
    await registry.close({ timeout: 0 });
  });
});
