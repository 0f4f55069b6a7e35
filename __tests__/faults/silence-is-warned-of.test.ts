import { afterEach, expect, it } from '@jest/globals';
import type { DistributedLock, LockType, LockWarningCode } from '../../lib';
import { DISTINCT_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 60_000;
const WARN_AFTER = 1_000;

describePrivate('the server is frozen', () => {
  const redis = PrivateRedis.install();

  afterEach(() => redis.thaw());

  it('Each registry of a frozen server warns once with what that affects, of long waits in time, and once when it is back', async () => {
    const types: LockType[] = ['spin', ...DISTINCT_TYPES];
    const client = await redis.connect();
    const stop = new AbortController();
    const open = async (lockType: LockType, isShared: boolean) => {
      const options = { registryKey: `${lockType} ${isShared}`, lockType, expireAfter: TTL };
      const ours = createRegistry(client, { ...options, warnAfter: WARN_AFTER });
      const theirs = createRegistry(await redis.connect(), { ...options, name: 'other' });
      const [busy, taken] = [ours.registry, theirs.registry].map((registry) =>
        isShared ? registry.semaphore('busy', { permits: 1 }) : registry.obtain('busy'),
      ) as [DistributedLock, DistributedLock];
      await (isShared ? ours.registry.readWrite('held').read : ours.registry.obtain('held')).lock();
      await taken.lock();
      // Redis says who holds it.
      await expect(busy.lock({ waitTime: 50 })).rejects.toMatchObject({ name: 'LockTimeoutError' });
      return { warnings: ours.warnings, busy };
    };
    const opened = await Promise.all([...types.map((type) => open(type, false)), open('spin', true)]);
    const all = opened.map(({ warnings }) => warnings);
    const waits = opened.map(({ busy }) => expect(busy.lock({ signal: stop.signal })).rejects.toBe('left'));
    redis.freeze();
    const of = (code: LockWarningCode) => all.map((warnings) => warnings.filter((warning) => warning.code === code));
    await until(() => of('REDIS_SILENT').every(({ length }) => length > 0), { within: 8_000 });
    const affected = { leases: 1, waiters: 1, isOver: false };
    for (const [long] of of('LONG_WAIT')) {
      expect(long).toMatchObject({ key: 'busy', holder: { isThisProcess: false } });
      expect(long?.message).toMatch(/by the last answer .*\. Redis has not answered for \d s$/);
    }
    for (const [silent, ...more] of of('REDIS_SILENT')) {
      expect(more).toEqual([]);
      expect(silent).toMatchObject({ silence: affected });
      expect(silent?.silence?.duration).toBeGreaterThanOrEqual(3_000);
      expect(silent?.silence?.firstLeaseEndsIn).toBeGreaterThan(TTL - 15_000);
      expect(silent?.silence?.firstLeaseEndsIn).toBeLessThan(TTL - 3_000);
    }
    redis.thaw();
    await until(() => of('REDIS_SILENT').every(({ length }) => length > 1), { within: 5_000 });
    expect(of('REDIS_SILENT').map(([, ...more]) => more)).toMatchObject(all.map(() => [{ silence: { isOver: true } }]));
    stop.abort('left');
    await Promise.all(waits);
  });
});
