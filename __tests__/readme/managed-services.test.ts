import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CannotAcquireLockError, RedisLockRegistry } from '../../lib';
import { LOCK_TYPES } from '../../lib/api/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { untilQuiet } from '../support/server-load';
import { Contention, KEY, REGISTRY_KEY } from './contention';
import { codeSpans, tableBelow } from './pages';

const SERVICES = tableBelow('docs/redis.md', 'Managed Redis', 'service').map(
  ([name = '', forbids = '', here = '']) => ({
    service: name.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'),
    // Only what is written as a command.
    forbidden: codeSpans(forbids),
    works: !here.includes('nothing works'),
  }),
);

describePrivate('docs/redis.md', () => {
  const redis = PrivateRedis.install();
  let contention: Contention | undefined;
  let users = 0;

  beforeEach(async () => {
    await redis.admin.flushAll();
    await redis.admin.scriptFlush();
  });

  afterEach(async () => {
    await contention?.close();
    contention = undefined;
  });

  /** A user that may do everything but this. Commands that this server does not have need not be forbidden. */
  async function userWithout(commands: readonly string[]): Promise<{ username: string; password: string }> {
    const username = `user-${users++}`;
    const known = (await redis.admin.sendCommand(['COMMAND', 'LIST'])) as unknown as string[];
    const rules = commands.filter((name) => known.includes(name.split('|')[0] ?? '')).map((name) => `-${name}`);
    await redis.admin.sendCommand(['ACL', 'SETUSER', username, 'on', '>secret', '~*', '&*', '+@all', ...rules]);
    return { username, password: 'secret' };
  }

  async function expectRefused(commands: readonly string[]): Promise<void> {
    const client = await redis.connect(await userWithout(commands));
    const registry = new RedisLockRegistry(client, { registryKey: REGISTRY_KEY, commandTimeout: 500 });
    await expect(registry.obtain(KEY).lock()).rejects.toThrow(CannotAcquireLockError);
    await registry.close();
    client.destroy();
  }

  it('docs/redis.md names services', () => {
    expect(SERVICES.length).toBeGreaterThan(8);
    expect(SERVICES.filter(({ works }) => !works)).toHaveLength(1);
  });

  it.each(LOCK_TYPES)('docs/redis.md says that every lock type works on each of them: %s', async (lockType) => {
    const forbidden = SERVICES.flatMap((service) => (service.works ? service.forbidden : []));
    contention = new Contention(redis, lockType, true, await userWithout(forbidden));
    await contention.run();
    expect(contention.warnings).toEqual([]);
  });

  it.each(SERVICES.filter(({ works }) => !works))(
    'docs/redis.md says that nothing works on $service',
    ({ forbidden }) => expectRefused(forbidden),
  );

  describe('says what happens without', () => {
    const ROWS = tableBelow('docs/redis.md', 'Managed Redis', 'without');
    const warningsWithout = async (...commands: string[]): Promise<string[]> => {
      contention = new Contention(redis, 'pub-sub', false, await userWithout(commands));
      const registry = await contention.registry();
      const other = await contention.registry();
      const lease = await registry.obtain(KEY).lock();
      const waiting = other.run(KEY, () => 'served');
      // It has found the lock taken, and failed to subscribe, or waits.
      await untilQuiet(redis.admin);
      await lease.unlock();
      expect(await waiting).toBe('served');
      return [...new Set(contention.warnings.map(({ code }) => code))];
    };

    it('EVAL, EVALSHA: calls reject at once', () => expectRefused(['eval', 'evalsha']));

    it('PUBLISH: NOTIFICATION_REFUSED', async () => {
      expect(await warningsWithout('publish')).toEqual(['NOTIFICATION_REFUSED']);
    });

    it('SUBSCRIBE: SUBSCRIBER_UNAVAILABLE', async () => {
      expect(await warningsWithout('subscribe')).toEqual(['SUBSCRIBER_UNAVAILABLE']);
    });

    it.each(ROWS.slice(3).map(([cell = '']) => [codeSpans(cell).map((name) => name.toLowerCase())]))(
      '%s: locks work, without a warning',
      async (commands) => {
        expect(await warningsWithout(...commands)).toEqual([]);
      },
    );
  });
});
