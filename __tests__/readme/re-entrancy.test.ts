import { beforeEach, expect, it } from '@jest/globals';
import { type DistributedLock, LockTimeoutError } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';

/** What docs/reference.md says under "Re-entrancy" of one lock; other tests have the rows about shared locks. */
describePrivate('Re-entrancy, as docs/reference.md has it:', () => {
  const redis = PrivateRedis.install();
  let lock: DistributedLock;

  const audit = () => lock.run(() => 'audited');

  beforeEach(() => {
    lock = createRegistry(redis.admin, { registryKey: 'accounts' }).registry.obtain('account:7');
  });

  it('siblings take turns', async () => {
    let inside = 0;
    const sibling = () =>
      lock.run(async () => {
        expect(++inside).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 10));
        inside--;
      });
    await lock.run(() => Promise.all([sibling(), sibling(), sibling()]));
  });

  it('lock inside a run enters once, and a second one waits like a sibling', async () => {
    await lock.run(async () => {
      const nested = await lock.lock();
      await expect(lock.lock({ waitTime: 50 })).rejects.toThrow(LockTimeoutError);
      await expect(lock.run(audit, { waitTime: 50 })).rejects.toThrow(LockTimeoutError);
      expect(await lock.tryLock()).toBeNull();
      await nested.unlock();
      expect(await audit()).toBe('audited');
    });
  });

  it('outside any run, nothing is re-entrant', async () => {
    const held = await lock.lock();
    await expect(lock.lock({ waitTime: 50 })).rejects.toThrow(LockTimeoutError);
    await expect(lock.run(audit, { waitTime: 50 })).rejects.toThrow(LockTimeoutError);
    expect(await lock.tryLock()).toBeNull();
    await held.unlock();
  });

  it('work that outlives its run acquires for itself', async () => {
    let later: Promise<string> | undefined;
    await lock.run(() => {
      const afterwards = new Promise((resolve) => setTimeout(resolve, 50));
      later = afterwards.then(audit); // the run does not wait for it
    });
    expect(lock.isAcquiredInThisProcess).toBe(false);
    expect(await later).toBe('audited');
  });
});
