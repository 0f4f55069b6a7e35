import { rm } from 'node:fs/promises';
import { beforeEach, expect, it } from '@jest/globals';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry, elapsed, type TestRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 1_500;

/** How to make a server answer with an error that passes, and how to end it. */
interface Trouble {
  begin(): Promise<unknown>;
  end(): Promise<unknown>;
}

describePrivate('the server answers with an error that passes', () => {
  let redis: PrivateRedis;
  let admin: TestClient;
  let locks: TestRegistry;

  beforeEach(async () => {
    redis = await PrivateRedis.start('--busy-reply-threshold', '50');
    admin = await redis.connect();
    locks = createRegistry(await connectTo(redis.address), { expireAfter: TTL, commandTimeout: 500 });
    const warmUp = await locks.registry.obtain('warm-up').lock();
    await warmUp.renew();
    await warmUp.unlock();
  });

  const troubles: Record<string, () => Trouble> = {
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
      // It cannot save: its folder is gone.
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

  it.each(Object.keys(troubles))('%s: P1 P6: waited out, and never a loss', async (name) => {
    const trouble = (troubles[name] as () => Trouble)();
    const lease = await locks.registry.obtain('key').lock();
    const given = await locks.registry.obtain('given').lock();
    await trouble.begin();
    const hasCause = { name: 'CannotAcquireLockError', cause: { message: expect.stringMatching(`^${name} `) } };
    const trying = locks.registry.obtain('free').lock({ waitTime: 200 });
    const rejected = expect(trying).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    expect(await elapsed(trying)).toBeGreaterThan(190);
    await rejected;
    await expect(locks.registry.obtain('free').tryLock()).rejects.toMatchObject(hasCause);
    await expect(lease.renew(TTL + 5_000)).rejects.toMatchObject(hasCause);
    const waiting = locks.registry.obtain('free').lock();
    // Within its bound the trouble may end, or not.
    const unlocking = given
      .unlock()
      .catch((error: unknown) => expect(error).toMatchObject({ name: 'LockReleaseError' }));
    await until(() => lease.remaining < TTL / 2);
    expect(lease.signal.aborted).toBe(false);
    await trouble.end();
    await (await waiting).unlock();
    await unlocking;
    await until(() => lease.remaining > TTL / 2);
    expect(lease.signal.aborted).toBe(false);
    await lease.unlock();
    expect(locks.warnings).toEqual([]);
  });

  it('LOADING: P1 P6: waited out, and never a loss', async () => {
    const settings = ['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024'];
    const slow = await PrivateRedis.start(...settings);
    const { registry } = createRegistry(await slow.connect(), { expireAfter: 5_000, commandTimeout: 500 });
    const filler = await slow.connect();
    await Promise.all(Array.from({ length: 600 }, (_, i) => filler.set(`filler-${i}`, 'x'.repeat(200))));
    const lease = await registry.obtain('key').lock();
    await filler.sendCommand(['SAVE']);
    await slow.kill();
    const reviving = slow.revive();
    await until(async () => /LOADING/.test(String(await filler.get('filler-0').catch(String))), { within: 5_000 });
    await expect(registry.obtain('free').tryLock()).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/^LOADING /) },
    });
    await (await registry.obtain('free').lock()).unlock();
    await reviving;
    await lease.renew();
    expect(lease.remaining).toBeGreaterThan(4_500);
    await lease.unlock();
  });

  it('READONLY: P6: what a replica does not have is no proof of a loss', async () => {
    const lease = await locks.registry.obtain('key').lock({ ttl: 10_000 });
    // A restarted master that will be the replica of its successor, and has not got the data yet.
    await admin.flushAll();
    await admin.replicaOf('127.0.0.1', 1);
    await expect(lease.renew()).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    expect(lease.signal.aborted).toBe(false);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockReleaseError' });
  });
});
