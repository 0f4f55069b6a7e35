import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { LockTimeoutError, type LockType, type LockWarning } from '../../../lib';
import { LOCK_TYPES } from '../../../lib/kinds';
import { InMemoryLockRegistry } from '../../../lib/testing';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

describePrivate('A caller that waits in vain', () => {
  const redis = PrivateRedis.install();

  const two = async (lockType: LockType, warnAfter = 200) => {
    const holder = createRegistry(await redis.connect(), { lockType, name: 'web-7' });
    const { registryKey } = holder;
    const waiter = createRegistry(await redis.connect(), { lockType, registryKey, warnAfter });
    return { holder: holder.registry, waiter: waiter.registry, warnings: waiter.warnings, registryKey };
  };

  describe.each(LOCK_TYPES)('for a %s lock', (lockType) => {
    it('A caller that waits in vain for a lock is warned of, with the holder and how long it has to live', async () => {
      const { holder, waiter, warnings } = await two(lockType);
      const lease = await holder.obtain('key').lock();
      const { owner } = await holder.obtain('key').inspect();
      const waiting = waiter.run('key', () => undefined);
      await until(() => warnings.length > 0);
      expect(warnings[0]).toMatchObject({ code: 'LONG_WAIT', key: 'key' });
      expect(warnings[0]?.holder).toMatchObject({ owner, name: 'web-7', isThisProcess: false, isAroundCaller: false });
      expect(warnings[0]?.holder?.remaining).toBeGreaterThan(0);
      expect(warnings[0]?.message).toMatch(/"key".*web-7 holds it/);
      await lease.unlock();
      await waiting;
    });

    it('A caller that waits in vain for a lock gets the owner and its remaining time with LockTimeoutError', async () => {
      const { holder, waiter } = await two(lockType);
      const lease = await holder.obtain('key').lock({ ttl: 50_000 });
      const { owner } = await waiter.obtain('key').inspect();
      const error = await waiter
        .obtain('key')
        .lock({ waitTime: 500 })
        .catch((reason) => reason);
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(error.owner).toBe(owner);
      expect(error.remaining).toBeGreaterThan(lease.remaining - 5_000);
      expect(error.remaining).toBeLessThanOrEqual(50_000);
      const local = await holder
        .obtain('key')
        .lock({ waitTime: 50 })
        .catch((reason) => reason);
      expect(local.owner).toBe(owner);
      await lease.unlock();
    });
  });

  it.each([
    ['has no expiry', {}],
    ['expires in', { PX: 60_000 }],
  ])('A caller that waits in vain reads no value that is no owner value, of a key that %s', async (end, expiry) => {
    const { waiter, warnings, registryKey } = await two('spin');
    await redis.admin.set(`${registryKey}:key`, 'hunter2', expiry);
    const waiting = waiter.obtain('key').lock({ waitTime: 450 });
    const error = await waiting.catch((reason) => reason);
    expect(error.message).toContain(`450 ms: another program holds it, in no form that is known, and its key ${end}`);
    expect(error.owner).toBeUndefined();
    expect(warnings[0]?.message).toContain(`: another program holds it, in no form that is known, and its key ${end}`);
    expect(inspect([error, ...warnings])).not.toMatch(/hunter2|Infinity ms/);
  });
});

it('A long wait for a lease that was detached names who has detached it, and is no deadlock', async () => {
  const warnings: LockWarning[] = [];
  const registry = new InMemoryLockRegistry({ warnAfter: 50, onWarning: (warning) => warnings.push(warning) });
  await (await registry.obtain('key').lock()).detach();
  const error = await registry
    .obtain('key')
    .lock({ waitTime: 400 })
    .catch((reason) => reason);
  expect(error.message).toMatch(/ 400 ms: \S+ detached its lease, and its key expires in \d+ ms/);
  expect(warnings[0]?.message).toMatch(
    / ms: \S+ detached its lease, and its key expires in \d+ ms unless it is renewed$/,
  );
  await registry.close({ timeout: 0 });
});
