import { expect, it } from '@jest/globals';
import { type Lease, LockLostError, type LockRegistry } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createProxiedRegistry } from '../support/proxied-registry';
import { uniqueKey } from '../support/redis';
import { untilQuiet } from '../support/server-load';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

type Slow = Awaited<ReturnType<typeof createProxiedRegistry>>;

const KEY = 'key';

/** ms; a grant whose message was lost is found by polling well within the second for which it stands. */
const LATE = 700;

describePrivate('A fair lock whose grant messages arrive late', () => {
  const redis = PrivateRedis.install();

  const start = async () => {
    const registryKey = uniqueKey('late');
    const options = { registryKey, lockType: 'fair', fencing: true } as const;
    const slow = await createProxiedRegistry(redis, options);
    const other = async () => createRegistry(await redis.connect(), options).registry;
    return { slow, other, name: slow.nameOf(KEY) };
  };

  /**
   * A lease of `slow` that it polled for, because the message of its grant is held back. On a busy machine the key of the
   * holder may end before the waiter is in the queue, or before the release; then the next round has a longer one.
   */
  const grantWithoutMessage = async (slow: Slow, holder: LockRegistry): Promise<Lease> => {
    for (let ttl = 2_500; ; ttl *= 2) {
      const held = await holder.obtain(KEY).lock({ ttl });
      const waiting = slow.registry.obtain(KEY).lock();
      await untilQuiet(redis.admin);
      await until(() => held.remaining < LATE, { within: ttl });
      slow.messages.replies.hold = true;
      const released = await held.unlock().then(
        () => true,
        (error: unknown) => {
          if (error instanceof LockLostError) return false;
          throw error;
        },
      );
      const lease = await waiting;
      if (released) return lease;
      slow.messages.replies.hold = false;
      await lease.unlock();
    }
  };

  it.each(['is still cached', 'was evicted meanwhile'])(
    'keeps its lease when the message arrives after the lease was polled for, and the lock object %s',
    async (cached) => {
      const { slow, other, name } = await start();
      const holder = await other();
      const first = await holder.obtain(KEY).lock({ ttl: 10_000 });
      await expect(slow.registry.obtain(KEY).lock({ waitTime: 200 })).rejects.toMatchObject({
        name: 'LockTimeoutError',
      });
      // The subscription of that wait lasts for a moment longer.
      if (cached !== 'is still cached') slow.registry.expireUnusedOlderThan(-1);
      await first.unlock();
      const lease = await grantWithoutMessage(slow, holder);
      const owner = await redis.admin.get(name);
      expect(owner).not.toBeNull();
      slow.messages.replies.hold = false;
      await slow.settle();
      expect(await redis.admin.get(name)).toBe(owner);
      expect(await holder.obtain(KEY).tryLock()).toBeNull();
      lease.assertHeld();
      await lease.unlock();
    },
  );

  it('gives a lease the token of the grant that is held, and not that of an earlier one', async () => {
    const { slow, other, name } = await start();
    const [holder, between] = [await other(), await other()];
    const lease = await holder.obtain(KEY).lock();
    const waiting = slow.registry.obtain(KEY).lock();
    await untilQuiet(redis.admin);
    const next = between.obtain(KEY).lock();
    await untilQuiet(redis.admin);
    // The first grant runs out: its process gets no message, and cannot poll.
    slow.messages.replies.hold = true;
    slow.commands.requests.hold = true;
    await lease.unlock();
    const held = await next;
    slow.commands.requests.hold = false;
    await until(async () => (await redis.admin.zCard(`{${name}}:queue`)) === 1);
    // The message of the first grant arrives when the second one was made and is not known to its process.
    slow.commands.requests.hold = true;
    await held.unlock();
    slow.messages.replies.hold = false;
    await slow.subscriber.ping();
    slow.commands.requests.hold = false;
    const late = await waiting;
    expect(late.fencingToken).toBeGreaterThan(held.fencingToken as number);
    await late.unlock();
  });
});
