import { expect, it } from '@jest/globals';
import { machineDelay } from '../../support/machine-delay';
import { spyOn } from '../../support/spied-client';
import { until, WAIT_LIMIT } from '../../support/until';
import type { LockFixture } from '../lock-fixture';
import { reliable, SLACK } from '../timing';

/** ms. The first renewal is due after a third of it and may be late by the rest. */
const TTL = 1_000;

export function keepingAlive(fixture: LockFixture): void {
  it('The watchdog renews every lease that was acquired without a ttl, or with `renew: true`, beyond its first ttl', async () => {
    const [registry, other] = [fixture.registry({ expireAfter: TTL }), fixture.otherRegistry()];
    const keys = Array.from({ length: 30 }, (_, i) => `key ${i}`);
    const leases = await Promise.all(keys.map((key) => registry.obtain(key).lock()));
    leases.push(await registry.obtain('with a ttl').lock({ ttl: TTL - 10, renew: true }));
    const start = performance.now();
    let attempts = 0;
    await until(async () => {
      for (const lease of leases) lease.assertHeld();
      expect(await other.obtain(leases[attempts++ % leases.length]?.key as string).tryLock()).toBeNull();
      return performance.now() - start > 1.5 * TTL;
    });
    await Promise.all(leases.map((lease) => lease.unlock()));
  });

  it('The watchdog sends nothing for a lease that is released soon, and nothing after its release (P7)', async () => {
    const spy = spyOn(fixture.clients[0]);
    const registry = fixture.registryOn(spy, { expireAfter: TTL });
    await (await registry.obtain('key').lock()).unlock();
    const before = spy.sent;
    const lease = await registry.obtain('key').lock();
    await lease.unlock();
    expect(spy.sent).toBe(before + 2);
    const released = performance.now();
    await until(() => performance.now() - released > TTL / 2);
    expect(spy.sent).toBe(before + 2);
  });

  it('The watchdog does not renew a lease that was acquired with a ttl, or with `renew: false`', async () => {
    const registry = fixture.registry({ expireAfter: 150 });
    const fixed = await registry.obtain('fixed').lock({ ttl: 150 });
    const unrenewed = await registry.obtain('unrenewed').lock({ renew: false });
    const byDefault = await fixture.registry({ expireAfter: 150, renew: false }).obtain('default').lock();
    await until(() => fixed.signal.aborted && unrenewed.signal.aborted && byDefault.signal.aborted, {
      within: 150 + WAIT_LIMIT,
    });
    expect(unrenewed.signal.reason).toMatchObject({ reason: 'expired' });
  });

  it('The watchdog stops renewing after maxHold, so that the lease ends with its ttl', async () => {
    const start = performance.now();
    const lease = await fixture.registry({ expireAfter: 200, maxHold: 80 }).obtain('key').lock();
    await until(() => lease.signal.aborted, { within: 280 + WAIT_LIMIT });
    expect(performance.now() - start).toBeGreaterThan(reliable(200) - 2); // when it was sent, and its deadline, are whole ms
    expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
    await until(async () => !(await fixture.isInRedis('key')), { within: WAIT_LIMIT });
  });

  it('The watchdog detects a deleted or stolen key, does not restore it, and does not touch the key of another owner (P6)', async () => {
    const registry = fixture.registry({ expireAfter: TTL });
    const [gone, stolen] = await Promise.all(['gone', 'stolen'].map((key) => registry.obtain(key).lock()));
    if (gone === undefined || stolen === undefined) throw new Error('not reached');
    let losses = 0;
    for (const { signal } of [gone, stolen]) {
      signal.addEventListener('abort', () => {
        losses += 1;
      });
    }
    await fixture.admin.del(fixture.nameOf('gone'));
    await fixture.admin.set(fixture.nameOf('stolen'), 'somebody else', { PX: 60_000 });
    await until(() => losses === 2, { within: TTL / 3 + WAIT_LIMIT });
    expect(gone.signal.reason).toMatchObject({ reason: 'expired' });
    expect(stolen.signal.reason).toMatchObject({ reason: 'stolen' });
    await expect(stolen.unlock()).rejects.toMatchObject({ reason: 'stolen' });
    expect(losses).toBe(2);
    expect(await fixture.isInRedis('gone')).toBe(false);
    expect(await fixture.ttlOf('stolen')).toBeGreaterThan(60_000 - TTL - 2 * SLACK - machineDelay());
    await fixture.admin.del(fixture.nameOf('stolen'));
  });
}
