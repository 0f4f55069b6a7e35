import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { LockType, RedisLockRegistryOptions } from '../../lib';
import { TRAVELLING_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry, lossOf } from '../support/test-registry';
import { until } from '../support/until';

/** ms; nobody waits for so long unless something is wrong. */
const LONG = 30_000;

describePrivate('A call for several keys beside others of its process', () => {
  const redis = PrivateRedis.install();

  /** Two registries of the same keys. The first one knows that one server has all of its keys. */
  const pair = async (lockType: LockType, options: Partial<RedisLockRegistryOptions> = {}) => {
    const registryKey = uniqueKey('beside');
    const { registry: ours } = createRegistry(await redis.connect(), { registryKey, lockType, ...options });
    const { registry: theirs } = createRegistry(await redis.connect(), { registryKey, lockType });
    for (let i = 0; i < 2; i++) await ours.multi(['x', 'y']).run(() => undefined);
    return { ours, theirs };
  };

  const scriptsRun = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.admin.info('commandstats'))?.[1]);

  it.each(TRAVELLING_TYPES)(
    'rejects when it wakes, and there is no room for a key that was evicted: %s',
    async (lockType) => {
      const { ours, theirs } = await pair(lockType, { cacheCapacity: 4 });
      const kept = ours.multi(['a', 'b']);
      for (const key of ['c', 'd', 'e', 'f']) await (await ours.obtain(key).lock()).unlock();
      // Another call for several keys: so the next one looks first whether its keys may be free.
      const held = await theirs.obtain('x').lock();
      const other = ours.multi(['x']).lock();
      await until(() => ours.obtain('x').passing.waiting > 0);
      const [first, ...filling] = [
        await ours.obtain('a').lock(),
        await ours.obtain('c').lock(),
        await ours.obtain('d').lock(),
      ];
      const call = kept.lock({ waitTime: LONG }).catch((error: Error) => error);
      await sleep(20);
      await first.unlock();
      expect(await call).toMatchObject({ message: expect.stringContaining('cannot be cached') });
      for (const lease of filling) await lease.unlock();
      await (await kept.lock()).unlock();
      await held.unlock();
      await (await other).unlock();
    },
  );

  it.each(TRAVELLING_TYPES)(
    'waits for a sibling in its scope, and asks for nothing meanwhile: %s',
    async (lockType) => {
      const { ours, theirs } = await pair(lockType);
      let end = (): void => undefined;
      const ended = new Promise<void>((resolve) => (end = resolve));
      await ours.run('a', async () => {
        const sibling = ours.run('a', () => ended);
        const call = ours.multi(['a', 'b']).run(() => 'ran');
        await sleep(50);
        const before = await scriptsRun();
        await sleep(300);
        expect((await scriptsRun()) - before).toBeLessThan(20);
        expect(
          await theirs
            .obtain('b')
            .tryLock()
            .then((lease) => lease?.unlock()),
        ).toBeUndefined();
        end();
        await sibling;
        expect(await call).toBe('ran');
      });
    },
  );

  it.each([[['z']], [['y', 'z']]])(
    'takes its keys in order in the end, though an older call waits for others: %j',
    async (older) => {
      const { ours, theirs } = await pair('pub-sub');
      const held = await theirs.obtain('z').lock();
      const before = ours.multi(older).lock();
      await until(() => ours.obtain('z').passing.waiting > 0);
      // One of the two is held until the other one is not free: nobody waits for one and holds the other.
      const busy = (async () => {
        let one = await theirs.obtain('a').lock();
        for (let i = 1; ; i++) {
          const other = await theirs.obtain(i % 2 === 0 ? 'a' : 'b').tryLock();
          await one.unlock();
          if (other === null) return;
          one = other;
          await sleep(20);
        }
      })();
      const lease = await ours.multi(['a', 'b']).lock({ waitTime: LONG });
      await lease.unlock();
      await busy;
      await held.unlock();
      await (await before).unlock();
    },
  );

  it.each(TRAVELLING_TYPES)(
    'ends what is taken from it while it waits: who took it begins at once: %s',
    async (lockType) => {
      const { ours, theirs } = await pair(lockType, { inbox: true });
      const held = await theirs.obtain('b').lock();
      // Nobody else waits in this process: after 2 s it keeps what it gets.
      const call = ours.multi(['a', 'b']).lock();
      await until(async () => (await theirs.obtain('a').inspect()).held);
      const taken = await theirs.obtain('a').lock({ replace: true, grace: LONG });
      await held.unlock();
      await taken.unlock();
      await (await call).unlock();
    },
  );

  it('leaves no listener with the lease around it, where it was asked whether it is asked', async () => {
    const { ours } = await pair('spin');
    await ours.run('a', async (around) => {
      await ours.multi(['a', 'b']).run((lease) => expect(lease.asked.aborted).toBe(false));
      expect(getEventListeners(around.asked, 'abort')).toEqual([]);
      // Where Node keeps what `AbortSignal.any` has made of a signal.
      const kept = Object.getOwnPropertySymbols(around.asked).find(({ description }) =>
        /Depend.ntSignals/.test(`${description}`),
      );
      expect((around.asked as unknown as Record<symbol, Set<unknown> | undefined>)[kept as symbol]?.size ?? 0).toBe(0);
      const lease = await ours.multi(['c', 'd']).lock();
      const asked = new Promise((resolve) => lease.asked.addEventListener('abort', resolve));
      await until(() => ours.obtain('d').ask());
      await asked;
      const lost = lossOf(lease);
      await ours.obtain('c').forceUnlock();
      await lost;
    });
  });
});
