import { expect, it } from '@jest/globals';
import { CannotAcquireLockError, LockTimeoutError, NotReplicatedError, RegistryClosedError } from '../../lib';
import { NotSentError } from '../../lib/redis/failure';
import { EVERY_LOCK } from '../support/every-lock';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

class ClientClosedError extends Error {}

/** What a call that fails aborts its siblings with: its own error, perhaps one of another Redis. */
const REASONS: readonly unknown[] = [
  new Error("READONLY You can't write against a read only replica."),
  new Error('LOADING Redis is loading the dataset in memory'),
  new Error('CLUSTERDOWN The cluster is down'),
  new Error('WRONGTYPE Operation against a key holding the wrong kind of value'),
  new Error('NOSCRIPT No matching script. Please use EVAL.'),
  new NotReplicatedError(2, 1, 100),
  new NotSentError(50),
  new ClientClosedError('The client is closed'),
  new CannotAcquireLockError('Lock "other" could not be acquired', 'other'),
  new LockTimeoutError('other', 100),
  new RegistryClosedError('The registry of "other" is closed', 'other'),
  'a text',
  null,
];

const CALLS = [
  { how: 'waits', options: {} },
  { how: 'makes one attempt', options: { waitTime: 0 } },
];

describePrivate('A caller that aborts while its attempt is in flight', () => {
  const redis = PrivateRedis.install();

  it.each(EVERY_LOCK.flatMap((lock) => CALLS.map((call) => ({ ...lock, ...call }))))(
    'P2: a caller of $name that $how leaves nothing in Redis, whatever the reason of its signal is like',
    async ({ lockType, acquire, options }) => {
      const proxy = await redis.proxy();
      const { registry, registryKey } = createRegistry(await connectTo(proxy.address), { lockType });
      const keysOf = (key: string) => redis.admin.keys(`*${registryKey}:${key}*`);
      // Its scripts are loaded.
      await (await acquire(registry, 'warm-up', options)).unlock();
      proxy.replies.hold = true;
      const calls = REASONS.map((reason, i) => {
        const controller = new AbortController();
        const key = `key ${i}.`;
        const call = acquire(registry, key, { ...options, signal: controller.signal });
        const rejected = call.then(
          () => expect('a lease').toBe(reason),
          (error: unknown) => expect(error).toBe(reason),
        );
        return { key, rejected, abort: () => controller.abort(reason) };
      });
      for (const { key } of calls) await until(async () => (await keysOf(key)).length > 0);
      for (const { abort } of calls) abort();
      await Promise.all(calls.map(({ rejected }) => rejected));
      proxy.replies.hold = false;
      // Each would live for a minute, or half of one.
      for (const { key } of calls) await until(async () => (await keysOf(key)).length === 0);
    },
  );
});
