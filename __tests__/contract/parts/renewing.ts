import { expect, it } from '@jest/globals';
import { LockLostError, NotLockOwnerError } from '../../../lib';
import { machineDelay } from '../../support/machine-delay';
import { until } from '../../support/until';
import type { LockFixture } from '../lock-fixture';
import { reliable, SLACK } from '../timing';

export function renewing(fixture: LockFixture): void {
  it('lease.renew() makes the lease last the new ttl from now, not added to the old one', async () => {
    const lease = await fixture.registry().obtain('key').lock({ ttl: 5_000 });
    await lease.renew(10_000);
    expect(lease.remaining).toBeLessThanOrEqual(reliable(10_000));
    expect(lease.remaining).toBeGreaterThan(reliable(10_000) - SLACK - machineDelay());
    expect(await fixture.ttlOf('key')).toBeLessThanOrEqual(10_000);
    expect(await fixture.ttlOf('key')).toBeGreaterThan(10_000 - SLACK - machineDelay());
    await lease.unlock();
  });

  it('lease.renew() never makes the lease shorter than it was', async () => {
    const lease = await fixture.registry().obtain('key').lock({ ttl: 60_000 });
    await lease.renew(100);
    expect(lease.remaining).toBeGreaterThan(60_000 - SLACK - machineDelay());
    expect(await fixture.ttlOf('key')).toBeGreaterThan(60_000 - SLACK - machineDelay());
    await lease.unlock();
  });

  it('lease.renew() uses the ttl of the lease where none is given', async () => {
    const lease = await fixture.registry().obtain('key').lock({ ttl: 5_000 });
    await until(() => lease.remaining < reliable(5_000) - 50);
    const sentAt = performance.now();
    await lease.renew();
    expect(lease.remaining).toBeGreaterThan(reliable(5_000) - (performance.now() - sentAt) - 25);
    await lease.unlock();
  });

  it('lease.renew() rejects after the lease has ended, and does not restore the key', async () => {
    const lease = await fixture.registry().obtain('key').lock({ ttl: 200 });
    await until(async () => !(await fixture.isInRedis('key')));
    await expect(lease.renew(60_000)).rejects.toMatchObject({ reason: 'expired' });
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it.each(['renew', 'unlock'] as const)(
    'lease.renew() reports at once a deleted or stolen key, as unlock does, and does not touch that of another owner (P6): %s',
    async (method) => {
      const registry = fixture.registry();
      const gone = await registry.obtain('gone').lock({ ttl: 60_000 });
      const stolen = await registry.obtain('stolen').lock({ ttl: 60_000 });
      await fixture.admin.del(fixture.nameOf('gone'));
      await fixture.admin.set(fixture.nameOf('stolen'), 'somebody else', { PX: 5_000 });
      await expect(gone[method]()).rejects.toMatchObject({ reason: 'expired' });
      await expect(stolen[method]()).rejects.toMatchObject({ reason: 'stolen' });
      expect(stolen.signal.reason).toBeInstanceOf(LockLostError);
      expect(stolen.remaining).toBe(0);
      expect(await fixture.isInRedis('gone')).toBe(false);
      expect(await fixture.isInRedis('stolen')).toBe(true);
      expect(await fixture.ttlOf('stolen')).toBeLessThanOrEqual(5_000);
      await fixture.admin.del(fixture.nameOf('stolen'));
    },
  );

  it('lease.renew() is refused after unlock, and does not restore the key', async () => {
    const lease = await fixture.registry().obtain('key').lock({ ttl: 60_000 });
    await lease.unlock();
    await expect(lease.renew()).rejects.toThrow(NotLockOwnerError);
    expect(() => lease.assertHeld()).toThrow(NotLockOwnerError);
    expect(lease.signal.aborted).toBe(false);
    expect(await fixture.isInRedis('key')).toBe(false);
  });
}
