import { beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLock, RedisLockRegistry } from '../../lib';
import { SLACK } from '../contract/timing';
import { Oracle } from '../support/oracle';
import { describePrivate } from '../support/private-redis';
import type { FaultyProxy } from '../support/proxy';
import { elapsed } from '../support/test-registry';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

const TTL = 60_000;

describePrivate.each(['spin', 'pub-sub'] as const)(
  'A caller that leaves while a %s lock is handed over to it',
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
      ({ registry } = fixture.registry(client, { lockType, idleBetweenTries: 20, expireAfter: TTL }));
      // From now on the server knows the scripts.
      await Promise.all([1, 2].map(() => registry.run('warm up', () => undefined)));
      lock = registry.obtain('key');
      holder = await lock.lock();
    });

    /** The holder gives it back; Redis hands it over, and its answer does not arrive. Answers with the next owner. */
    const handOver = async (): Promise<{ unlocking: Promise<void>; next: string | null }> => {
      const before = await owner();
      proxy.replies.hold = true;
      const unlocking = holder.unlock();
      await until(async () => (await owner()) !== before);
      return { unlocking, next: await owner() };
    };

    it('by its signal is rejected at once, and the one behind it gets the same lease without a request', async () => {
      const stop = new AbortController();
      const leaving = expect(lock.lock({ signal: stop.signal })).rejects.toBe('enough');
      const behind = lock.lock();
      const { unlocking, next } = await handOver();
      const requests = await fixture.requests();
      const aborted = performance.now();
      stop.abort('enough');
      await leaving;
      expect(performance.now() - aborted).toBeLessThan(SLACK);
      proxy.replies.hold = false;
      await unlocking;
      const lease = await behind;
      expect(await owner()).toBe(next);
      expect(await fixture.requests()).toBe(requests);
      lease.assertHeld();
      await lease.unlock();
      expect(await fixture.isHeld('key')).toBe(false);
    });

    it('by its waitTime is told so in time, and the one behind it gets the lock', async () => {
      const late = lock.lock({ waitTime: 150 });
      const leaving = expect(late).rejects.toMatchObject({ name: 'LockTimeoutError' });
      const took = elapsed(late);
      const behind = lock.lock();
      const { unlocking } = await handOver();
      await leaving;
      expect(await took).toBeLessThan(150 + SLACK);
      proxy.replies.hold = false;
      await unlocking;
      await (await behind).unlock();
      expect(await fixture.isHeld('key')).toBe(false);
    });

    it('leaves it to the one behind it, also when that one asks for another ttl', async () => {
      const stop = new AbortController();
      const leaving = expect(lock.lock({ signal: stop.signal })).rejects.toBe('enough');
      const behind = lock.lock({ ttl: 5_000 });
      const { unlocking, next } = await handOver();
      stop.abort('enough');
      await leaving;
      proxy.replies.hold = false;
      await unlocking;
      const answered = performance.now();
      const lease = await behind;
      expect(performance.now() - answered).toBeLessThan(SLACK);
      expect(await owner()).not.toBe(next);
      expect(await fixture.admin.pTTL(fixture.namesOf('key').lock)).toBeLessThanOrEqual(5_000);
      expect(lease.remaining).toBeLessThanOrEqual(5_000);
      await lease.unlock();
      expect(await fixture.isHeld('key')).toBe(false);
    });

    it('and that was the last one leaves no key behind (P2)', async () => {
      const stop = new AbortController();
      const leaving = expect(lock.lock({ signal: stop.signal })).rejects.toBe('enough');
      const { unlocking } = await handOver();
      stop.abort('enough');
      await leaving;
      proxy.replies.hold = false;
      await unlocking;
      await until(async () => !(await fixture.isHeld('key')));
      expect(lock.isAcquiredInThisProcess).toBe(false);
    });

    it('since the registry is closed is rejected at once, and leaves no key behind (P2)', async () => {
      const leaving = Promise.all(
        [1, 2].map(() => expect(lock.lock()).rejects.toMatchObject({ name: 'RegistryClosedError' })),
      );
      const { unlocking } = await handOver();
      const closed = performance.now();
      const closing = registry.close();
      await leaving;
      expect(performance.now() - closed).toBeLessThan(SLACK);
      proxy.replies.hold = false;
      await unlocking;
      await closing;
      await until(async () => !(await fixture.isHeld('key')));
    });

    it('at whatever moment: the others get their turns, alone, and no key is left', async () => {
      const oracle = new Oracle(fixture.admin);
      let given = 0;
      const outcomes = Promise.allSettled(
        Array.from({ length: 200 }, async (_, caller) => {
          const patience = caller % 3 === 0 ? { signal: AbortSignal.timeout(Math.ceil(Math.random() * 150)) } : {};
          const ttl = caller % 2 === 0 ? {} : { ttl: TTL };
          const lease = await lock.lock({ ...patience, ...ttl });
          given++;
          await oracle.section(() => undefined);
          await lease.unlock();
        }),
      );
      await holder.unlock();
      const rejected = (await outcomes).filter(({ status }) => status === 'rejected');
      expect(rejected.length).toBeLessThanOrEqual(67);
      for (const outcome of rejected) expect(outcome).toMatchObject({ reason: { name: 'TimeoutError' } });
      expect(given).toBe(200 - rejected.length);
      expect(oracle.violations).toEqual([]);
      await until(async () => !(await fixture.isHeld('key')));
    });
  },
);
