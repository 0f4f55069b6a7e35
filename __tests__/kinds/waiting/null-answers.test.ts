import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../../support/lock-types';
import { connectTo, describePrivate, PrivateRedis } from '../../support/private-redis';
import { createRegistry } from '../../support/test-registry';

const ROUNDS = 8;

describePrivate.each(LOCK_TYPES)('tryLock of a %s lock that nobody holds', (lockType) => {
  const redis = PrivateRedis.install();

  it('tryLock of a lock that nobody holds is not null, right after an unlock whose only waiter left', async () => {
    const proxy = await redis.proxy();
    const { registry } = createRegistry(await connectTo(proxy.address), { lockType });
    proxy.replies.delay = 5;
    const outcomes: boolean[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const lock = registry.obtain(`key ${round}`);
      const lease = await lock.lock();
      const abort = new AbortController();
      const waiting = lock.lock({ signal: abort.signal });
      const rejected = expect(waiting).rejects.toBe('left');
      await sleep(60); // it waits, and the hold has to be confirmed before it is passed on
      // Both are in flight: the release, which may be for the waiter, and what follows from its leaving.
      proxy.replies.hold = true;
      const sent = proxy.requests.bytes;
      const unlocking = lease.unlock();
      while (proxy.requests.bytes === sent) await new Promise(setImmediate);
      abort.abort('left');
      proxy.replies.hold = false;
      await Promise.all([rejected, unlocking]);
      const next = await lock.tryLock();
      outcomes.push(next !== null);
      await next?.unlock();
    }
    expect(outcomes).toEqual(outcomes.map(() => true));
  });
});
