import { expect, it } from '@jest/globals';
import { LockLostError } from '../../../lib';
import { machineDelay } from '../../support/machine-delay';
import { until, WAIT_LIMIT } from '../../support/until';
import type { LockFixture } from '../lock-fixture';
import { reliable, SLACK } from '../timing';

export function expiring(fixture: LockFixture): void {
  it('A lease with a ttl ends by itself, with its signal, slightly before the key does (P3, P4)', async () => {
    const asked = performance.now();
    const lease = await fixture.registry().obtain('key').lock({ ttl: 200 });
    const granted = performance.now();
    const life = await fixture.ttlOf('key');
    const lifeOfKeyEnds = performance.now() + life;
    let abortedAt = 0;
    let heldAtAbort = true;
    lease.signal.addEventListener('abort', () => {
      abortedAt = performance.now();
      heldAtAbort = lease.remaining > 0;
    });
    await until(() => lease.signal.aborted);
    expect(heldAtAbort).toBe(false);
    expect(abortedAt).toBeGreaterThanOrEqual(asked + reliable(200) - 2); // when it was sent, and its deadline, are whole ms
    expect(abortedAt).toBeLessThan(granted + 200 + SLACK + machineDelay());
    expect(asked + reliable(200)).toBeLessThan(lifeOfKeyEnds);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.signal.reason).toMatchObject({ reason: 'expired', key: 'key' });
    expect(lease.remaining).toBe(0);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
  });

  it('A lease with a ttl frees the lock in this process too: the next local caller acquires it without an unlock', async () => {
    const lock = fixture.registry().obtain('key');
    const first = await lock.lock({ ttl: 200 });
    const second = await lock.lock({ waitTime: 200 + WAIT_LIMIT });
    expect(first.remaining).toBe(0);
    expect(lock.isAcquiredInThisProcess).toBe(true);
    await expect(first.unlock()).rejects.toThrow(LockLostError);
    second.assertHeld();
    await second.unlock();
    expect(lock.isAcquiredInThisProcess).toBe(false);
  });

  it('A lease with a ttl does not affect the ttl of the next lease of the key', async () => {
    const lock = fixture.registry({ expireAfter: 20_000 }).obtain('key');
    await (await lock.lock({ ttl: 60_000 })).unlock();
    await lock.lock();
    expect(await fixture.ttlOf('key')).toBeLessThanOrEqual(20_000);
    await lock.unlock();
  });
}
