import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { EvalOptions, Lease, LockType, RedisClient } from '../../../lib';
import { traitsOf } from '../../../lib/api/lock-types';
import { RELEASE, RENEW_GRANT } from '../../../lib/kinds/fair/scripts';
import { REDISSON_SCRIPTS } from '../../../lib/kinds/redisson/kind';
import { KEEP } from '../../../lib/kinds/redisson-fair/scripts';
import { RELEASE as SHARED_RELEASE } from '../../../lib/kinds/shared/scripts';
import { SPRING_SCRIPTS } from '../../../lib/kinds/spring/kind';
import type { LockScript } from '../../../lib/redis/script';
import { LEARNS_REPLACEMENT } from '../../../lib/redis/silence-times';
import { LOCK_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createProxiedRegistry } from '../../support/proxied-registry';
import { spyOn } from '../../support/spied-client';
import { createRegistry } from '../../support/test-registry';
import { until, WAIT_LIMIT } from '../../support/until';

/** ms by which times of the server differ that are counted in whole ms. */
const ROUNDING = 2;

describePrivate.each(LOCK_TYPES)('minHold of a %s lock', (lockType: LockType) => {
  const redis = PrivateRedis.install();

  /** When the key ends, by the server's clock, in ms. */
  async function endOf(name: string): Promise<number> {
    const script = `local time = redis.call('TIME')
      return string.format('%.0f', time[1] * 1000 + time[2] / 1000 + redis.call('PTTL', KEYS[1]))`;
    return Number(await redis.admin.eval(script, { keys: [name] }));
  }

  it('minHold of a lock is not changed by what is sent later, or again, for the lease (P7)', async () => {
    const sent: { sha1: string; options: EvalOptions }[] = [];
    const recording: RedisClient = {
      eval: (script, options) => redis.admin.eval(script, options),
      evalSha(sha1, options = {}) {
        sent.push({ sha1, options });
        return redis.admin.evalSha(sha1, options);
      },
    };
    const { registry, nameOf } = createRegistry(recording, { lockType });
    const lock = registry.obtain('key');
    const cycle = async (minHold: number): Promise<string> => {
      const lease = await lock.lock({ ttl: 60_000, minHold });
      await lease.renew();
      await lease.unlock();
      return (lease as Lease & { readonly owner: string }).owner;
    };
    const released = await cycle(0);
    const owner = await cycle(5_000);
    const before = { owner: (await lock.inspect()).owner, end: await endOf(nameOf('key')) };
    // Attempts, renewals, the release and the unlock, all as of the lease that is kept.
    for (const { sha1, options } of [...sent]) {
      const args = options.arguments?.map((argument) => (argument === released ? owner : argument)) ?? [];
      await redis.admin.evalSha(sha1, { ...options, arguments: args });
    }
    expect(sent.length).toBeGreaterThanOrEqual(6);
    expect((await lock.inspect()).owner).toBe(`kept@${owner}`);
    expect(before.owner).toBe(`kept@${owner}`);
    expect(Math.abs((await endOf(nameOf('key'))) - before.end)).toBeLessThanOrEqual(ROUNDING);
  });

  it('minHold of several locks counts from the grant of all of them, also when one was granted late, and requested once more', async () => {
    const { registry, registryKey, nameOf } = createRegistry(redis.admin, { lockType });
    const other = createRegistry(redis.admin, { lockType, registryKey });
    await other.registry.obtain('b').lock({ ttl: 300 });
    const acquiring = registry.multi(['a', 'b']).lock({ ttl: 60_000, minHold: 1_000 });
    await other.registry.obtain('b').inspect();
    redis.freeze();
    await pause(900);
    const thawed = Date.now();
    redis.thaw();
    await (await acquiring).unlock();
    const granted = thawed + LEARNS_REPLACEMENT;
    for (const key of ['a', 'b']) expect(await endOf(nameOf(key))).toBeGreaterThanOrEqual(granted + 1_000 - ROUNDING);
  });

  it('minHold of a lock counts from a grant by another process, also when the first renewal of `fair` has not arrived', async () => {
    const { registry, registryKey, nameOf } = createRegistry(redis.admin, { lockType });
    const withoutFirstRenewals: RedisClient = {
      eval: (script, options) =>
        script === RENEW_GRANT.source ? new Promise(() => {}) : redis.admin.eval(script, options),
      evalSha: (sha1, options) => redis.admin.evalSha(sha1, options),
    };
    const subscriber = await redis.connect();
    const other = createRegistry(withoutFirstRenewals, { lockType, subscriber, registryKey });
    const first = await registry.obtain('key').lock({ ttl: 60_000 });
    const second = other.registry.obtain('key').lock({ ttl: 60_000, minHold: 5_000 });
    await until(async () => (await registry.obtain('key').inspect()).waiting !== 0);
    const before = Date.now();
    await first.unlock();
    const lease = await second;
    const after = Date.now();
    await lease.unlock();
    const end = await endOf(nameOf('key'));
    expect(end).toBeGreaterThanOrEqual(before + 5_000 - ROUNDING);
    expect(end).toBeLessThanOrEqual(after + 5_000 + ROUNDING);
  });

  it('minHold of a lock is kept when the unlock was not answered: what repeats it in the background does not free the lock', async () => {
    const options = { lockType, commandTimeout: 300 };
    const { registry, nameOf, client, commands } = await createProxiedRegistry(redis, options);
    const lock = registry.obtain('key');
    const lease = await lock.lock({ ttl: 60_000, minHold: 5_000 });
    const acquired = (await endOf(nameOf('key'))) - 60_000;
    commands.blackHole = true;
    await expect(lease.unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_RELEASE' });
    commands.blackHole = false;
    const { connections } = commands;
    commands.reset();
    // The client does not know of the reset at once.
    await until(() => commands.connections > connections && client.isReady);
    await until(async () => (await lock.inspect()).owner?.startsWith('kept@'));
    // The connection was made again: the age that the key shows is still that of the acquisition.
    expect(Math.abs((await endOf(nameOf('key'))) - acquired - 5_000)).toBeLessThanOrEqual(ROUNDING);
  });

  it('minHold of a lock is kept by a server that is out of memory, too', async () => {
    const { registry } = createRegistry(redis.admin, { lockType });
    const lock = registry.obtain('key');
    const lease = await lock.lock({ ttl: 60_000, minHold: 5_000 });
    await redis.admin.configSet('maxmemory', '1');
    await lease.unlock().finally(() => redis.admin.configSet('maxmemory', '0'));
    expect((await lock.inspect()).owner).toMatch(/^kept@/);
  });

  if (!traitsOf(lockType).polls) {
    it('minHold of a lock wakes a waiter at its end that polls seldom', async () => {
      const { registry, registryKey, nameOf } = createRegistry(redis.admin, { lockType });
      const [client, subscriber] = [await redis.connect(), await redis.connect()];
      const spy = spyOn(client);
      const other = createRegistry(spy, { lockType, registryKey, subscriber, idleBetweenTries: WAIT_LIMIT });
      const lease = await registry.obtain('key').lock({ ttl: 60_000, minHold: 500 });
      const next = other.registry.obtain('key').lock();
      await until(async () => (await redis.admin.pubSubChannels()).some((channel) => channel.includes(nameOf('key'))));
      // It asks once more when it listens, and sleeps then.
      await until(() => spy.sent >= 2);
      for (let turn = 0; turn < 3; turn++) await client.ping();
      await lease.unlock();
      const unlocked = performance.now();
      await (await next).unlock();
      expect(performance.now() - unlocked).toBeLessThan(WAIT_LIMIT);
    });
  }

  it('minHold of a nested call lasts so long from then on, and the key lives long enough for it', async () => {
    const { registry, nameOf } = createRegistry(redis.admin, { lockType });
    const lock = registry.obtain('key');
    await lock.run(
      async () => {
        await lock.run(() => undefined, { minHold: 20_000 });
        expect(await redis.admin.pTTL(nameOf('key'))).toBeGreaterThan(15_000);
      },
      { ttl: 10_000, minHold: 1_000 },
    );
    const life = await redis.admin.pTTL(nameOf('key'));
    expect(life).toBeGreaterThan(15_000);
    expect(life).toBeLessThanOrEqual(20_000);
  });
});

/** The form of a key, what keeps it, with its other keys, and how it takes the numbers of a `Keep`. */
type Keeping = [format: string, LockScript, others: string[], args: (...numbers: string[]) => string[]];

const KEEPING: Keeping[] = [
  ['string', SPRING_SCRIPTS.KEEP, [], (...numbers) => ['me:1', ...numbers, 'channel']],
  ['hash', REDISSON_SCRIPTS.KEEP, [], (...numbers) => ['me:1', ...numbers, 'PUBLISH', 'channel']],
  ['hash', KEEP, ['list', 'zset'], (...numbers) => ['me:1', '0', '0', 'PUBLISH', 'channel', ...numbers]],
  ['string', RELEASE, ['zset', 'hash'], (...by) => ['me:1', 'DEL', `PUBLISH none 0 0 0 0  0 0 ${by.join(' ')}`, '']],
  ['zset', SHARED_RELEASE, ['hash'], (...numbers) => ['write', 'me:1', 'channel', ...numbers]],
];

describePrivate('How long minHold keeps a lock', () => {
  const redis = PrivateRedis.install();
  const [minHold, ttl] = [5_000, 60_000];

  it.each<[what: string, left: number, life: number, kept: number]>([
    ['what is left by the local clock, when it was renewed', 100, ttl, 100],
    ['what is left by the clock of Redis, when the reply was long on its way', minHold, ttl - 2_000, 3_000],
    ['nothing, when it is over by the clock of Redis', 100, ttl - 2 * minHold, 1],
    ['what is left by the local clock, when its expiry was taken away', minHold, 0, minHold],
  ])('How long minHold keeps a lock is %s, in each format', async (_, left, life, kept) => {
    const { admin } = redis;
    for (const [format, { source }, others, args] of KEEPING) {
      await admin.flushAll();
      if (format === 'string') await admin.set('lock', 'me:1');
      if (format === 'hash') await admin.hSet('lock', 'me:1', '1');
      if (format === 'zset') await admin.zAdd('lock', { score: Date.now() + (life || ttl), value: 'write:me:1' });
      if (life > 0) await admin.pExpire('lock', life);
      const numbers = [left, minHold, ttl].map(String);
      const options = { keys: ['lock', ...others], arguments: args(...numbers) };
      await admin.eval(source, options);
      // A client whose reply was lost runs it again: the lock is kept already.
      if (kept > 1_000) expect([await admin.eval(source, options)].flat()[0]).toBeGreaterThan(0);
      const end = await admin.pTTL('lock');
      expect(end).toBeLessThanOrEqual(kept + ROUNDING);
      expect(end).toBeGreaterThan(kept - 1_000);
    }
  });
});
