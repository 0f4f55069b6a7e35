import { beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLock, RedisLockRegistry } from '../../lib';
import type { FaultyProxy } from '../../support/proxy';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

const TTL = 60_000;

/** ms after which a hold has to be confirmed before it is passed on. */
const NOT_FRESH = 60;

describePrivate.each(['spin', 'pub-sub'] as const)(
  'A caller that leaves while the hold of a %s lock is confirmed for it',
  (lockType) => {
    const fixture = RedisFixture.install();
    let proxy: FaultyProxy;
    let registry: RedisLockRegistry;
    let lock: RedisLock;
    let holder: Lease;

    const owner = () => fixture.admin.get(fixture.namesOf('key').lock);

    beforeEach(async () => {
      const { proxy: made, client } = await fixture.proxied();
      proxy = made;
      // The slice does not end within a test: then the lock would be released and not passed on.
      const options = { lockType, idleBetweenTries: 20, expireAfter: TTL, handOver: TTL, commandTimeout: TTL };
      ({ registry } = fixture.registry(client, options));
      // Loads the scripts into the server.
      const slow = () => new Promise((resolve) => setTimeout(resolve, NOT_FRESH));
      await Promise.all([1, 2].map(() => registry.run('warm up', slow)));
      lock = registry.obtain('key');
      holder = await lock.lock();
    });

    /** The holder unlocks after a while, so that Redis is asked first, and the reply is held back. Resolves to the owner. */
    const passOn = async (): Promise<{ unlocking: Promise<void>; before: string | null }> => {
      const before = await owner();
      await new Promise((resolve) => setTimeout(resolve, NOT_FRESH));
      const requests = await fixture.requests();
      proxy.replies.hold = true;
      const unlocking = holder.unlock();
      await until(async () => (await fixture.requests()) > requests);
      return { unlocking, before };
    };

    it('by its signal is rejected at once, and the next waiter gets the hold without another request', async () => {
      const stop = new AbortController();
      const leaving = expect(lock.lock({ signal: stop.signal })).rejects.toBe('aborted');
      const behind = lock.lock();
      const { unlocking, before } = await passOn();
      const requests = await fixture.requests();
      const aborted = performance.now();
      stop.abort('aborted');
      await leaving;
      expect(performance.now() - aborted).toBeLessThan(SLACK + machineDelay());
      proxy.replies.hold = false;
      await unlocking;
      const lease = await behind;
      expect(await owner()).toBe(before);
      expect(await fixture.requests()).toBe(requests);
      lease.assertHeld();
      await lease.unlock();
      expect(await fixture.isHeld('key')).toBe(false);
    });

    it('by `close` is rejected at once, and leaves no key behind (P2)', async () => {
      const leaving = Promise.all(
        [1, 2].map(() => expect(lock.lock()).rejects.toMatchObject({ name: 'RegistryClosedError' })),
      );
      const { unlocking } = await passOn();
      const closed = performance.now();
      const closing = registry.close();
      await leaving;
      expect(performance.now() - closed).toBeLessThan(SLACK + machineDelay());
      proxy.replies.hold = false;
      await unlocking;
      await closing;
      await until(async () => !(await fixture.isHeld('key')));
    });
  },
);
