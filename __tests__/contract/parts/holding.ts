import { expect, it } from '@jest/globals';
import { NotLockOwnerError } from '../../../lib';
import { machineDelay } from '../../support/machine-delay';
import type { LockFixture } from '../lock-fixture';
import { SLACK } from '../timing';

export function holding(fixture: LockFixture): void {
  it('minHold keeps an unlocked lock from everybody until it ends, and its waiters get it then', async () => {
    const registry = fixture.registry();
    const lock = registry.obtain('key');
    const taken = performance.now();
    const lease = await lock.lock({ minHold: 400, ttl: 60_000 });
    const waiting = [lock, fixture.otherRegistry().obtain('key')].map(async (waiter) => {
      const next = await waiter.lock();
      const waited = performance.now() - taken;
      await next.unlock();
      return waited;
    });
    await lease.unlock();
    expect(lease.remaining).toBe(0);
    expect(lease.signal.aborted).toBe(false);
    expect(lock.isAcquiredInThisProcess).toBe(false);
    await lease.unlock();
    await expect(lease.renew()).rejects.toBeInstanceOf(NotLockOwnerError);
    const waited = await Promise.all(waiting);
    expect(Math.min(...waited)).toBeGreaterThanOrEqual(400 - 1); // Redis counts in whole ms
    expect(Math.max(...waited)).toBeLessThan(400 + 2 * SLACK + machineDelay());
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('minHold leaves a key without a holder, which `inspect` shows and `close` does not wait for (P7)', async () => {
    const registry = fixture.registry();
    const name = fixture.nameOf('key');
    await registry.run('key', () => undefined, { minHold: 30_000 });
    const state = await registry.obtain('key').inspect();
    expect(state).toMatchObject({ held: true, isOurs: false, name: expect.any(String) });
    expect(state.owner).toContain(`kept@${registry.id}:`);
    expect(state.remaining).toBeLessThanOrEqual(30_000);
    expect(state.remaining).toBeGreaterThan(20_000);
    expect(await registry.obtain('key').tryLock()).toBeNull();
    expect(await fixture.otherRegistry().obtain('key').tryLock()).toBeNull();
    await registry.close();
    expect(await fixture.admin.exists(name)).toBe(1);
    await fixture.admin.del(name);
  });
}
