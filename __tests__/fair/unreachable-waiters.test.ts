import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { untilQuiet } from '../support/server-load';
import { createRegistry, elapsed } from '../support/test-registry';

const KEY = 'key';

/** ms; a waiter polls once a second, and a busy machine takes its time. */
const SOON = 3_000;

describePrivate('A waiter that no message reaches', () => {
  const redis = PrivateRedis.install();

  beforeAll(async () => {
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'mute', 'on', '>x', '~*', '&*', '+@all', '-publish', '-spublish']);
  });

  const start = async (lockType: (typeof LOCK_TYPES)[number]) => {
    // It polls so seldom that only a poll of once a second finds anything.
    const options = { registryKey: uniqueKey('unreachable'), lockType, idleBetweenTries: 100 };
    const mute = createRegistry(await redis.connect({ username: 'mute', password: 'x' }), options);
    const waiter = createRegistry(await redis.connect(), options);
    return { mute, waiter };
  };

  const endings = ['a holder without the right to PUBLISH released it', 'its key was deleted by hand'] as const;

  it.each(LOCK_TYPES.flatMap((lockType) => endings.map((ending) => ({ lockType, ending }))))(
    'of a $lockType lock gets it soon after $ending',
    async ({ lockType, ending }) => {
      const { mute, waiter } = await start(lockType);
      const lease = await mute.registry.obtain(KEY).lock({ ttl: 6_000 });
      const waiting = waiter.registry.obtain(KEY).lock();
      if (ending === endings[1]) await redis.admin.persist(mute.nameOf(KEY));
      await sleep(300); // it was refused, and waits
      await (ending === endings[0] ? lease.unlock() : redis.admin.del(mute.nameOf(KEY)));
      expect(await elapsed(waiting)).toBeLessThan(SOON + machineDelay());
      await (await waiting).unlock();
    },
  );

  it('of a fair lock causes one warning in the process that may not PUBLISH', async () => {
    const { mute, waiter } = await start('fair');
    for (let i = 0; i < 2; i++) {
      const lease = await mute.registry.obtain(KEY).lock({ ttl: 6_000 });
      const waiting = waiter.registry.obtain(KEY).lock();
      await untilQuiet(redis.admin);
      await lease.unlock();
      await (await waiting).unlock();
    }
    expect(mute.warnings).toHaveLength(1);
    expect(mute.warnings[0]?.message).toMatch(/publish/i);
    expect(waiter.warnings).toEqual([]);
  });
});
