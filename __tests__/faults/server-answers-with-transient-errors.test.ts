import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it } from '@jest/globals';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { coded } from '../support/since';
import { createRegistry, rejection, type TestRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 1_500;

describePrivate('the server answers with a transient error', () => {
  let redis: PrivateRedis;
  let admin: TestClient;
  let locks: TestRegistry;

  beforeEach(async () => {
    redis = await PrivateRedis.start('--lua-time-limit', '50');
    admin = await redis.connect();
    locks = createRegistry(await connectTo(redis.address), { expireAfter: TTL, commandTimeout: 500 });
    const warmUp = await locks.registry.obtain('warm-up').lock();
    await warmUp.renew();
    await warmUp.unlock();
  });

  /** How to cause a transient error of the server, and how to end it. */
  const transientErrors: Record<string, () => { begin(): Promise<unknown>; end(): Promise<unknown> }> = {
    READONLY: () => ({
      begin: () => admin.replicaOf('127.0.0.1', 1),
      end: () => admin.sendCommand(['REPLICAOF', 'NO', 'ONE']),
    }),
    MASTERDOWN: () => ({
      begin: async () => {
        await admin.configSet('replica-serve-stale-data', 'no');
        await admin.replicaOf('127.0.0.1', 1);
      },
      end: () => admin.sendCommand(['REPLICAOF', 'NO', 'ONE']),
    }),
    NOREPLICAS: () => ({
      begin: () => admin.configSet('min-replicas-to-write', '1'),
      end: () => admin.configSet('min-replicas-to-write', '0'),
    }),
    MISCONF: () => ({
      // It cannot save: its directory is missing.
      begin: async () => {
        await rm(redis.dir, { recursive: true });
        await admin.configSet('save', '3600 1');
        await admin.bgSave();
        await until(async () => (await admin.info('persistence')).includes('rdb_last_bgsave_status:err'));
      },
      end: () => admin.configSet('stop-writes-on-bgsave-error', 'no'),
    }),
    BUSY: () => {
      let script: Promise<unknown> = Promise.resolve();
      return {
        begin: async () => {
          const busy = await redis.connect();
          script = expect(busy.eval('while true do end')).rejects.toThrow('killed');
          await until(async () => (await admin.ping().catch(String)).includes('BUSY'));
        },
        end: async () => {
          await admin.sendCommand(['SCRIPT', 'KILL']);
          await script;
        },
      };
    },
  };

  it.each(Object.keys(transientErrors))('%s: P1 P6: retried until it ends, and never a loss', async (name) => {
    const error = (transientErrors[name] as (typeof transientErrors)[string])();
    const lease = await locks.registry.obtain('key').lock();
    const given = await locks.registry.obtain('given').lock();
    await error.begin();
    const hasCause = { name: 'CannotAcquireLockError', cause: { message: expect.stringMatching(`^${coded(name)}`) } };
    const trying = locks.registry.obtain('free').lock({ waitTime: 200 });
    expect(await rejection(trying, { name: 'CannotAcquireLockError' })).toBeGreaterThan(190);
    await expect(locks.registry.obtain('free').tryLock()).rejects.toMatchObject(hasCause);
    await expect(lease.renew(TTL + 5_000)).rejects.toMatchObject(hasCause);
    const waiting = locks.registry.obtain('free').lock();
    // The error may or may not end before the time limit of the release.
    const unlocking = given
      .unlock()
      .catch((reason: unknown) => expect(reason).toMatchObject({ name: 'LockReleaseError' }));
    await until(() => lease.remaining < TTL / 2);
    expect(lease.signal.aborted).toBe(false);
    await error.end();
    await (await waiting).unlock();
    await unlocking;
    await until(() => lease.remaining > TTL / 2);
    expect(lease.signal.aborted).toBe(false);
    await lease.unlock();
    // On a busy machine a renewal may be late by a third of the ttl, which is warned of.
    expect(locks.warnings.filter(({ code }) => code !== 'REDIS_SILENT')).toEqual([]);
  });

  it.each(['spin', 'pub-sub', 'fair'] as const)(
    'P1: a caller that waits behind a release without an answer counts its time from that: %s',
    async (lockType) => {
      const times = { commandTimeout: 1_500, unavailableAfter: 2_000, expireAfter: 60_000 };
      const { registry } = createRegistry(await connectTo(redis.address), { ...times, lockType });
      const lease = await registry.obtain('key').lock();
      const waiting = registry.obtain('key').lock();
      await admin.configSet('replica-serve-stale-data', 'no');
      await admin.replicaOf('127.0.0.1', 1);
      // Until then the waiting call would have it without a command.
      await sleep(100);
      const unlocking = expect(lease.unlock()).rejects.toThrow();
      const waited = await rejection(waiting, { name: 'CannotAcquireLockError' });
      expect(waited).toBeGreaterThan(1_900);
      expect(waited).toBeLessThan(3_000);
      await unlocking;
      await admin.sendCommand(['REPLICAOF', 'NO', 'ONE']);
      await registry.close();
    },
  );

  it('READONLY: P6: a key that is missing on a replica is no proof of a loss', async () => {
    const lease = await locks.registry.obtain('key').lock({ ttl: 10_000 });
    // As a restarted master that becomes the replica of its successor and has not loaded the data yet.
    await admin.flushAll();
    await admin.replicaOf('127.0.0.1', 1);
    await expect(lease.renew()).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    expect(lease.signal.aborted).toBe(false);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockReleaseError' });
  });
});
