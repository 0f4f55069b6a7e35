import { expect, it } from '@jest/globals';
import { machineDelay } from '../../support/machine-delay';
import { spyOn } from '../../support/spied-client';
import type { LockFixture } from '../lock-fixture';
import { reliable, SLACK } from '../timing';

export function acquiring(fixture: LockFixture): void {
  it('A free lock is acquired at once, with the given ttl (P3)', async () => {
    const lease = await fixture.registry().obtain('key').lock({ ttl: 60_000 });
    expect(lease.key).toBe('key');
    expect(lease.remaining).toBeLessThanOrEqual(reliable(60_000));
    expect(lease.remaining).toBeGreaterThan(reliable(60_000) - SLACK - machineDelay());
    const life = await fixture.ttlOf('key');
    expect(life).toBeLessThanOrEqual(60_000);
    expect(life).toBeGreaterThanOrEqual(lease.remaining);
    await lease.unlock();
  });

  it('A second holder of a key is refused while the first holds it', async () => {
    const [mine, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
    const lease = await mine.lock();
    expect(await theirs.tryLock()).toBeNull();
    expect(await mine.tryLock()).toBeNull();
    lease.assertHeld();
    await lease.unlock();
    const next = await theirs.tryLock();
    expect(next).not.toBeNull();
    expect(await mine.tryLock()).toBeNull();
    await next?.unlock();
  });

  it('tryLock() makes exactly one attempt, and none where a caller of this process holds the lock', async () => {
    const spy = spyOn(fixture.clients[1]);
    const other = fixture.registryOn(spy);
    const free = await other.obtain('free').tryLock({ waitTime: 0 });
    expect(free).not.toBeNull();
    const mine = await fixture.registry().obtain('key').lock();
    const before = spy.sent;
    expect(await other.obtain('key').tryLock()).toBeNull();
    expect(spy.sent).toBe(before + 1);
    expect(await other.obtain('free').tryLock()).toBeNull();
    expect(spy.sent).toBe(before + 1);
    await mine.unlock();
  });

  it('Different keys, and equal keys of different registryKeys, may be held at once', async () => {
    const registry = fixture.registry();
    const elsewhere = fixture.otherRegistry({ registryKey: `${fixture.registryKey}:other` });
    const leases = [
      await registry.obtain('one').tryLock(),
      await registry.obtain('two').tryLock(),
      await elsewhere.obtain('one').tryLock(),
    ];
    expect(leases).not.toContain(null);
    await Promise.all(leases.map((lease) => lease?.unlock()));
  });

  it('A lock may be locked and unlocked again and again, and leaves no key behind each time', async () => {
    const registry = fixture.registry();
    for (let round = 0; round < 30; round++) {
      const lock = registry.obtain('key');
      await lock.lock();
      await lock.unlock();
      expect(await fixture.isInRedis('key')).toBe(false);
      expect(registry.size).toBe(1);
    }
  });

  it('A lock knows without a command whether this process holds it', async () => {
    const lock = fixture.registry().obtain('key');
    const theirs = fixture.otherRegistry().obtain('key');
    expect(lock.isAcquiredInThisProcess).toBe(false);
    const lease = await lock.lock();
    expect(lock.isAcquiredInThisProcess).toBe(true);
    expect(theirs.isAcquiredInThisProcess).toBe(false);
    await lease.unlock();
    expect(lock.isAcquiredInThisProcess).toBe(false);
  });

  it.each([
    ['spaces', 'with a space'],
    ['letters beyond ASCII', 'ümläut € 漢字 🔒'],
    ['colons', 'a:b::c'],
    ['a hash tag', '{tag}:rest'],
    ['control characters', '\u0000\u0001\r\n'],
    ['10,000 letters', 'x'.repeat(10_000)],
  ])('A lock accepts a key with %s', async (_, key) => {
    const lease = await fixture.registry().obtain(key).lock();
    expect(await fixture.isInRedis(key)).toBe(true);
    expect(await fixture.otherRegistry().obtain(key).tryLock()).toBeNull();
    await lease.unlock();
    expect(await fixture.isInRedis(key)).toBe(false);
  });
}
