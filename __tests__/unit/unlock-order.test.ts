import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError, NotLockOwnerError } from '../../lib';
import { InMemoryLockRegistry } from '../../lib/testing';
import { lossOf } from '../support/test-registry';

let registry: InMemoryLockRegistry;

beforeEach(() => {
  registry = new InMemoryLockRegistry();
});

describe('unlock() of a lock that this process holds several times', () => {
  it.each([
    ['a semaphore', () => registry.semaphore('key', { permits: 3 })],
    ['a lock for reading', () => registry.readWrite('key').read],
  ])(
    'unlock() of a lock that this process holds several times takes a lost lease of %s for none of them: it reports the loss, and then unlocks the other one',
    async (_, of) => {
      const lock = of();
      // One that a run has is not of those that unlock() ends.
      let end = (): void => undefined;
      const running = lock.run(() => new Promise<void>((resolve) => (end = resolve)));
      const short = await lock.lock({ ttl: 20 });
      const other = await lock.lock();
      await lossOf(short);
      await expect(lock.unlock()).rejects.toThrow(LockLostError);
      other.assertHeld();
      await lock.unlock();
      expect(other.remaining).toBe(0);
      end();
      await running;
    },
  );

  it('unlock() of a lock that this process holds several times is refused while two of its leases are held, and unlocks neither', async () => {
    const lock = registry.semaphore('key', { permits: 3 });
    const leases = [await lock.lock(), await lock.lock()];
    await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
    for (const lease of leases) lease.assertHeld();
    for (const lease of leases) await lease.unlock();
  });
});
