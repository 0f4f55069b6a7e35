import { expect, it } from '@jest/globals';
import { CannotAcquireLockError } from '../../lib';
import { DISTINCT_TYPES } from '../support/lock-types';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createProxiedRegistry } from '../support/proxied-registry';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

describePrivate.each(DISTINCT_TYPES)('A %s lock of several keys, and a Redis that is silent', (lockType) => {
  const redis = PrivateRedis.install();

  /** A process that "b" is taken from. `commands`: the proxy between it and Redis. */
  const start = async (options: { expireAfter?: number } = {}) => {
    const shared = { lockType, registryKey: uniqueKey('multi'), idleBetweenTries: 20 };
    const { registry, commands } = await createProxiedRegistry(redis, { ...shared, ...options });
    const other = createRegistry(redis.admin, shared).registry;
    const taken = await other.obtain('b').lock();
    const comesBack = () => {
      commands.blackHole = false;
      commands.reset();
    };
    return { registry, commands, other, taken, comesBack, name: `${shared.registryKey}:a` };
  };

  it.each(['before the call', 'during the wait'])(
    'A lock of several keys, in a silence of Redis, settles by its deadline when it falls silent %s (P1, P2)',
    async (when) => {
      const { registry, commands, taken, comesBack, name } = await start();
      const multi = registry.multi(['a', 'b', 'c']);
      const silence = () => {
        commands.blackHole = true;
      };
      if (when === 'before the call') silence();
      const begun = performance.now();
      const waiting = multi.lock({ waitTime: 2_000, ttl: 60_000 });
      if (when === 'during the wait') {
        await until(() => registry.obtain('b').passing.waiting > 0, { within: 5_000 });
        silence();
      }
      await expect(waiting).rejects.toThrow(CannotAcquireLockError);
      expect(performance.now() - begun).toBeLessThan(2_000 + 1_500 + machineDelay());
      comesBack();
      // Far sooner than its ttl ends.
      await until(async () => (await redis.admin.exists(name)) === 0, { within: 20_000 });
      await taken.unlock();
    },
  );

  it('A key of several that was lost during the wait, in a silence of Redis, is not in the way (P2)', async () => {
    const expireAfter = 400;
    const { registry, commands, other, taken, name } = await start({ expireAfter });
    let isGranted = false;
    const waiting = registry.multi(['a', 'b']).lock();
    void waiting.then(() => (isGranted = true));
    await until(async () => ((await other.obtain('b').inspect()).waiting ?? 1) > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    // Redis grants more time, and its answers are lost.
    commands.replies.swallow = true;
    await redis.admin.pExpire(name, 60_000);
    await new Promise((resolve) => setTimeout(resolve, 1.5 * expireAfter));
    commands.replies.swallow = false;
    commands.reset();
    await taken.unlock();
    await until(() => isGranted, { within: 10_000 });
    await (await waiting).unlock();
  });
});
