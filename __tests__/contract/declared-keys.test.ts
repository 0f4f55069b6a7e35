import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { RedisLockRegistry, RedisLockRegistryOptions } from '../../lib';
import { findLocks } from '../../lib/tools/inspection/find-locks';
import { allScripts, libraryScripts } from '../../support/all-scripts';
import { sharedContract } from '../kinds/shared/shared-contract';
import { SharedFixture } from '../kinds/shared/shared-fixture';
import { createGuardedClient, declaredKeysClient, ran, takeViolations } from '../support/declared-keys';
import { LOCK_TYPES } from '../support/lock-types';
import { describeReal } from '../support/redis';
import { until } from '../support/until';
import { contractFor } from './lock-contract';
import { expiring } from './parts/expiring';
import { fencing } from './parts/fencing';
import { holding } from './parts/holding';
import { releasing } from './parts/releasing';
import { renewing } from './parts/renewing';
import { waiting } from './parts/waiting';

/** What stands behind the names of the scripts of a type. */
const FORMATS = { 'pub-sub': '(spring)', redisson: '(redisson)', 'redisson-fair': '(redisson-fair)' };

/*
 * Dragonfly, Kvrocks and ElastiCache Serverless refuse scripts that use a key which they do not declare, each in its own
 * way. Here every script runs before a guard that refuses such keys.
 */

describeReal('The guard of scripts', () => {
  it.each([
    ["redis.call('GET', 'other')", 'GET other'],
    ["redis.pcall('DEL', KEYS[1], 'other')", 'DEL key'],
    ["pcall(redis.call, 'SET', KEYS[1] .. ':other', 1)", 'SET key:other'],
    ["redis.call('FLUSHALL')", 'FLUSHALL nil'],
  ])('The guard of scripts finds %s', async (script, violation) => {
    const client = await createGuardedClient();
    await client.sendCommand(['EVAL', `${script} return 1`, '1', 'key']).catch(() => undefined);
    expect(await takeViolations()).toEqual([violation]);
    expect(await client.sendCommand(['EVAL', "return redis.call('EXISTS', KEYS[1])", '1', 'key'])).toBe(0);
  });
});

contractFor(declaredKeysClient, [], LOCK_TYPES);
sharedContract('A semaphore with one permit', declaredKeysClient, [releasing, waiting, renewing, expiring]);
sharedContract('The lock for writing', declaredKeysClient, [fencing, holding]);

describeReal('A client whose scripts may use their KEYS only', () => {
  const fixture = SharedFixture.install();

  async function pairOf(options: Partial<RedisLockRegistryOptions>): Promise<[RedisLockRegistry, RedisLockRegistry]> {
    const clients = [await createGuardedClient(), await createGuardedClient()] as const;
    return [fixture.registryOn(clients[0], options), fixture.registryOn(clients[1], options)];
  }

  it.each(LOCK_TYPES)(
    'Scripts use their KEYS only for several locks, results and lists, lock type %s',
    async (lockType) => {
      const [one, other] = await pairOf({ lockType, fencing: true, idleBetweenTries: 20 });
      const keys = Array.from({ length: 100 }, (_, i) => `key-${i}`);
      // The first calls go alone, until one server is known to have all keys.
      await Promise.all(keys.map((key) => one.run(key, () => undefined)));
      const leases = await Promise.all(keys.map((key) => one.obtain(key).lock({ ttl: 60_000 })));
      await Promise.all(leases.map((lease) => lease.renew()));
      const waits = other.multi(keys).run(() => 'all');
      expect(await other.obtain('key-0').inspect()).toMatchObject({ held: true });
      await Promise.all(leases.map((lease) => lease.unlock()));
      expect(await waits).toBe('all');
      expect(await one.once('once', () => 'result', { keepFor: 60_000 })).toBe('result');
      expect(await other.once('once', () => 'another', { keepFor: 60_000 })).toBe('result');
      expect(await other.forget('once')).toBe(true);
      await one.obtain('forced').lock({ minHold: 1_000 });
      expect(await other.obtain('forced').forceUnlock()).toMatchObject({ held: true });
      if (lockType !== 'redisson-fair') {
        const passport = await (await one.obtain('travels').lock()).detach();
        await (await other.adopt(passport)).unlock();
      }
      for await (const { key } of one.list()) expect(keys).toContain(key);
    },
  );

  it('Scripts use their KEYS only for shared locks, and for a key of another type', async () => {
    const [one, other] = await pairOf({ fencing: true, idleBetweenTries: 20 });
    const [semaphore, others] = [one, other].map((registry) => registry.semaphore('permits', { permits: 2 }));
    const lease = await semaphore?.lock({ minHold: 1_000 });
    const waits = others?.lock({ permits: 2 });
    await until(async () => ((await semaphore?.inspect())?.waiting ?? 0) > 0);
    await expect(other.obtain('permits').lock()).rejects.toThrow('semaphore');
    await lease?.unlock();
    await (await waits)?.unlock();
    const { read, write } = one.readWrite('both');
    const readers = [await read.lock(), await other.readWrite('both').read.lock()];
    const writes = write.run(({ fencingToken }) => fencingToken);
    await until(async () => ((await write.inspect()).waiting ?? 0) > 0);
    for (const reader of readers) await reader.unlock();
    expect(await writes).toBeGreaterThan(0);
    await read.lock();
    expect(await other.readWrite('both').write.forceUnlock()).toMatchObject({ held: true });
  });

  it.each(['pub-sub', 'redisson', 'redisson-fair'] as const)(
    'Scripts use their KEYS only when a busy lock is left to pollers, lock type %s',
    async (lockType) => {
      const [one] = await pairOf({ lockType, sharedWithPollers: true });
      let isOver = false;
      const busy = [1, 2].map(async () => {
        while (!isOver) await one.run('busy', () => sleep(10));
      });
      const isLeft = () =>
        libraryScripts().some(
          ({ name, sha1 }) => /leave.*\(/.test(name) && name.includes(FORMATS[lockType]) && ran.has(sha1),
        );
      await until(isLeft, { within: 60_000 });
      await sleep(500); // The lock is taken back, and those that listen get a message.
      isOver = true;
      await Promise.all(busy);
    },
  );

  // Its script looks at all keys of a server, so it can name none.
  it('The search of the command line finds locks also where its script is refused', async () => {
    const [one] = await pairOf({});
    const lease = await one.obtain('found').lock();
    expect(await takeViolations()).toEqual([]);
    const { locks, missing } = await findLocks(await createGuardedClient(), { match: '*found' });
    expect(locks).toMatchObject([{ lock: `${fixture.registryKey}:found` }]);
    expect(missing).toEqual([]);
    await lease.unlock();
    for (const violation of await takeViolations()) expect(violation).toMatch(/^(TYPE|GETRANGE) /);
  });

  it('Every script of the library has run, and none used a key that is not in its KEYS', async () => {
    expect(await takeViolations()).toEqual([]);
    const missing = libraryScripts().filter(({ sha1 }) => !ran.has(sha1));
    expect(missing.map(({ name }) => name)).toEqual([]);
    // Several runs of a script are one of another form.
    expect(
      allScripts().filter(({ name, sha1 }) => / (for many|in order)$/.test(name) && ran.has(sha1)).length,
    ).toBeGreaterThan(10);
  });
});
