import { getEventListeners } from 'node:events';
import { expect, it } from '@jest/globals';
import { CannotAcquireLockError } from '../../lib';
import { LOCK_TYPES } from '../../lib/protocols/lock-types';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createProxiedRegistry } from '../support/proxied-registry';
import { uniqueKey } from '../support/redis';
import { until } from '../support/until';

describePrivate.each(LOCK_TYPES)('A %s lock of several keys, and a Redis that is silent', (lockType) => {
  const redis = PrivateRedis.install();

  it.each(['before the call', 'during the wait'])(
    'settles by its deadline when it falls silent %s (P1, P2)',
    async (when) => {
      const registryKey = uniqueKey('multi');
      const options = { lockType, registryKey, idleBetweenTries: 20 };
      const { registry, commands } = await createProxiedRegistry(redis, options);
      const other = await createProxiedRegistry(redis, options);
      const taken = await other.registry.obtain('b').lock();
      const multi = registry.multi(['a', 'b', 'c']);
      const silence = () => {
        commands.blackHole = true;
      };
      if (when === 'before the call') silence();
      const begun = performance.now();
      const waiting = multi.lock({ waitTime: 800, ttl: 60_000 });
      if (when === 'during the wait') {
        await until(async () => (await redis.admin.exists(`${registryKey}:a`)) === 1, { within: 5_000 });
        silence();
      }
      await expect(waiting).rejects.toThrow(CannotAcquireLockError);
      expect(performance.now() - begun).toBeLessThan(800 + 1_500 + machineDelay());
      commands.blackHole = false;
      commands.reset();
      // Far sooner than its ttl ends.
      await until(async () => (await redis.admin.exists(`${registryKey}:a`)) === 0, { within: 20_000 });
      await taken.unlock();
      await Promise.all([registry.close(), other.registry.close()]);
    },
  );

  it('rejects at once when its caller aborts, and releases what it holds when Redis answers again (P8)', async () => {
    const registryKey = uniqueKey('multi');
    const options = { lockType, registryKey, idleBetweenTries: 20, commandTimeout: 60_000 };
    const { registry, commands } = await createProxiedRegistry(redis, options);
    const other = await createProxiedRegistry(redis, options);
    const taken = await other.registry.obtain('b').lock();
    const caller = new AbortController();
    const reason = new Error('enough');
    let outcome: unknown;
    const waiting = registry.multi(['a', 'b', 'c']).lock({ signal: caller.signal });
    void waiting.catch((error) => {
      outcome = error;
    });
    await until(async () => (await redis.admin.exists(`${registryKey}:a`)) === 1, { within: 5_000 });
    commands.blackHole = true;
    caller.abort(reason);
    // Far sooner than its release would fail.
    await until(() => outcome === reason, { within: 15_000 });
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
    commands.blackHole = false;
    commands.reset();
    await until(async () => (await redis.admin.exists(`${registryKey}:a`)) === 0, { within: 20_000 });
    await taken.unlock();
    await Promise.all([registry.close(), other.registry.close()]);
  });
});
