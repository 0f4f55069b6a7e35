import { expect, it } from '@jest/globals';
import { NotLockOwnerError } from '../../../lib';
import { spyOn } from '../../support/spied-client';
import type { LockFixture } from '../lock-fixture';

export function releasing(fixture: LockFixture): void {
  it('unlock() does nothing the second time, not even a command; a call at the same time shares the first (P7)', async () => {
    const spy = spyOn(fixture.clients[0]);
    const lock = fixture.registryOn(spy).obtain('key');
    await (await lock.lock()).unlock(); // loads the scripts into the server
    const lease = await lock.lock();
    const before = spy.sent;
    await Promise.all([lease.unlock(), lease.unlock()]);
    await lease.unlock();
    await lease[Symbol.asyncDispose]();
    expect(spy.sent).toBe(before + 1);
    const next = await fixture.otherRegistry().obtain('key').lock();
    await lease.unlock();
    next.assertHeld();
    expect(await fixture.isInRedis('key')).toBe(true);
    await next.unlock();
  });

  it('unlock() is refused to a caller that does not hold the lock, and changes nothing', async () => {
    const lease = await fixture.registry().obtain('key').lock({ ttl: 60_000 });
    const theirs = fixture.otherRegistry().obtain('key');
    await expect(theirs.unlock()).rejects.toThrow(NotLockOwnerError);
    expect(await theirs.tryLock()).toBeNull();
    await expect(theirs.unlock()).rejects.toThrow(NotLockOwnerError);
    expect(await fixture.isInRedis('key')).toBe(true);
    await lease.unlock();
  });

  it('unlock() reports an expired lease, and never deletes the key of the next holder (P7)', async () => {
    const lock = fixture.registry().obtain('key');
    const late = await lock.lock({ ttl: 200 });
    const next = await fixture.otherRegistry().obtain('key').lock({ ttl: 60_000 });
    await expect(late.unlock()).rejects.toMatchObject({ reason: 'expired', key: 'key' });
    await late.unlock();
    expect(await fixture.isInRedis('key')).toBe(true);
    expect(await fixture.registry().obtain('key').tryLock()).toBeNull();
    await next.unlock();
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('unlock() works after SCRIPT FLUSH', async () => {
    const registry = fixture.registry();
    for (let round = 0; round < 3; round++) {
      const lease = await registry.obtain('key').lock();
      await fixture.admin.forgetScripts();
      await lease.renew();
      await fixture.admin.forgetScripts();
      await lease.unlock();
      await fixture.admin.forgetScripts();
    }
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('The key is free at once when an `await using` block ends, in any way', async () => {
    const registry = fixture.registry();
    const normally = async () => {
      await using lease = await registry.obtain('key').lock();
      lease.assertHeld();
    };
    const early = async (leave: boolean) => {
      await using lease = await registry.obtain('key').lock();
      if (leave) return lease.key;
      throw new Error('not reached');
    };
    const throwing = async () => {
      await using lease = await registry.obtain('key').lock();
      throw new Error(`of the body of ${lease.key}`);
    };
    const nothing = async () => {
      await using lease = await fixture.otherRegistry().obtain('key').tryLock();
      return lease;
    };
    await normally();
    expect(await fixture.isInRedis('key')).toBe(false);
    expect(await early(true)).toBe('key');
    expect(await fixture.isInRedis('key')).toBe(false);
    await expect(throwing()).rejects.toThrow('of the body of key');
    expect(await fixture.isInRedis('key')).toBe(false);
    const lease = await registry.obtain('key').lock();
    expect(await nothing()).toBeNull();
    await lease.unlock();
  });
}
