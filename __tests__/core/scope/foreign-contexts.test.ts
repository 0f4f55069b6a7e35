import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it } from '@jest/globals';
import { type Lease, RedisLockRegistry } from '../../../lib';
import { DISTINCT_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

/** The application's own context: what a listener reads says whose code it runs in. */
const context = new AsyncLocalStorage<'owner' | 'foreign'>();

/** What a listener found when it was called. */
interface Called {
  readonly context: 'owner' | 'foreign' | undefined;
  /** It could take the lock of the foreign scope, as if it were part of it. */
  readonly entered: boolean;
}

/** What makes the loss of a lease known in the foreign scope. `remove` deletes its key. */
type Find = (lease: Lease, inScope: RedisLockRegistry, remove: () => Promise<unknown>) => Promise<unknown>;

const losses: readonly [how: string, { ttl: number; renew: boolean }, Find][] = [
  [
    'a timer, which a lock of the scope has set anew',
    { ttl: 300, renew: false },
    async (lease, inScope) => {
      const other = await inScope.obtain('other').lock({ ttl: 200 });
      await until(() => lease.signal.aborted, { within: 5_000 });
      await other.unlock().catch(() => undefined);
    },
  ],
  [
    'a call of `renew` in the scope',
    { ttl: 5_000, renew: false },
    async (lease, _inScope, remove) => {
      await remove();
      await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError' });
    },
  ],
];

/** A listener that tries to take the lock that the foreign scope has. */
const listener = (registry: RedisLockRegistry, calls: Promise<Called>[]) => () => {
  const found = context.getStore();
  const taking = registry.obtain('account').tryLock();
  calls.push(taking.then((lease) => ({ context: found, entered: lease !== null })));
};

function expectOutside(called: Called | undefined): void {
  expect(called).toMatchObject({ entered: false });
  expect(called?.context).not.toBe('foreign');
}

describePrivate.each(DISTINCT_TYPES)('In the scope of one %s lock', (lockType) => {
  const redis = PrivateRedis.install();

  it.each(losses)(
    'In the scope of a lock, the loss of another lease, found by %s, is not handled inside',
    async (_, options, find) => {
      const { registry, nameOf } = createRegistry(await redis.connect(), { lockType });
      const calls: Promise<Called>[] = [];
      const call = listener(registry, calls);
      const lease = await context.run('owner', async () => {
        const taken = await registry.obtain('lost').lock(options);
        taken.signal.addEventListener('abort', call);
        return taken;
      });
      await context.run('foreign', () =>
        registry.run('account', async () => {
          await find(lease, registry, () => redis.admin.del(nameOf('lost')));
          await until(() => calls.length > 0);
          expectOutside(await calls[0]);
        }),
      );
      expect(calls).toHaveLength(1);
    },
  );

  it('A warning that a wait in the scope of a lock causes is not handled inside', async () => {
    const options = { registryKey: 'warnings', lockType, idleBetweenTries: 20 };
    const other = createRegistry(await redis.connect(), options);
    const client = await redis.connect();
    const calls: Promise<Called>[] = [];
    const subscriber = { subscribe: () => Promise.reject(new Error('refused')), unsubscribe: async () => undefined };
    const registry = context.run('owner', (): RedisLockRegistry => {
      const onWarning = () => listener(made, calls)();
      const made = new RedisLockRegistry(client, { ...options, subscriber, onWarning });
      return made;
    });
    const held = await other.registry.obtain('contended').lock();
    await context.run('foreign', () =>
      registry.run('account', async () => {
        const waiting = registry.obtain('contended').lock();
        await until(() => calls.length > 0, { within: 5_000 });
        await held.unlock();
        await (await waiting).unlock();
        expectOutside(await calls[0]);
      }),
    );
    await registry.close();
  });
});
