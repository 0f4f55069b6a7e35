import { expect, it } from '@jest/globals';
import { NotLockOwnerError } from '../../../lib';
import { machineDelay } from '../../support/machine-delay';
import type { LockFixture } from '../lock-fixture';
import { reliable, SLACK } from '../timing';

/** Of the locks that `obtain` gives. */
export function renewingByKey(fixture: LockFixture): void {
  it('Renewing explicitly works on the registry by key, only for locks that it holds', async () => {
    const registry = fixture.registry();
    await expect(registry.renewLock('key', 1_000)).rejects.toThrow(NotLockOwnerError);
    const lock = registry.obtain('key');
    await expect(registry.renewLock('key')).rejects.toThrow(NotLockOwnerError);
    const lease = await lock.lock({ ttl: 5_000 });
    await registry.renewLock('key', 60_000);
    expect(lease.remaining).toBeGreaterThan(reliable(60_000) - SLACK - machineDelay());
    await expect(fixture.otherRegistry().renewLock('key')).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER' });
    await lock.unlock();
    await expect(registry.renewLock('key', 60_000)).rejects.toThrow(NotLockOwnerError);
  });
}
