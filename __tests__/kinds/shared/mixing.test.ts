import { describe, expect, it } from '@jest/globals';
import type { DistributedLock } from '../../../lib';
import {
  describeFormat,
  describeKeyType,
  describeKind,
  LOCK_TYPES,
  SHARED_KINDS,
  type SharedKind,
  traitsOf,
} from '../../../lib/api/lock-types';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import { InMemoryLocks } from '../../../lib/testing';
import { describeReal } from '../../support/redis';
import { pairsInMemory, SharedFixture } from './shared-fixture';

const lockOf: Readonly<Record<SharedKind, (registry: BackedLockRegistry) => DistributedLock>> = {
  semaphore: (registry) => registry.semaphore('key', { permits: 5 }),
  read: (registry) => registry.readWrite('key').read,
  write: (registry) => registry.readWrite('key').write,
};

/** Each kind, and each that it may not be beside on one key. */
const strangers = SHARED_KINDS.flatMap((held) =>
  SHARED_KINDS.filter((asked) => describeKind(asked) !== describeKind(held)).map((asked) => [held, asked] as const),
);

async function refusal(held: DistributedLock, asked: DistributedLock): Promise<string> {
  const lease = await held.lock();
  const refused = await asked.lock({ waitTime: 5_000 }).then(
    () => 'it entered',
    (error: Error) => error.message,
  );
  lease.assertHeld();
  await lease.unlock();
  return refused;
}

/** What `asked` says of a lock that is held as something else. */
async function said(held: DistributedLock, asked: DistributedLock): Promise<unknown[]> {
  const lease = await held.lock();
  const answers = [];
  for (const ask of [() => asked.inspect(), () => asked.forceUnlock()]) {
    answers.push(
      await ask().then(
        ({ holders }) => `held by ${holders}`,
        ({ name, cause }) => `${name} ${cause.message.slice(0, 9)}`,
      ),
    );
  }
  await lease.unlock().catch(() => undefined);
  return answers;
}

describeReal('A key that is a semaphore here and something else there', () => {
  const fixture = SharedFixture.install();

  it.each(strangers)(
    'A key that is a semaphore here and something else there is an error that names both: held to %s, asked to %s',
    async (held, asked) => {
      const [one, other] = await fixture.pair();
      expect(await refusal(lockOf[held](one), lockOf[asked](other))).toMatch(
        `It is ${describeKind(held)} in Redis, and it is used as ${describeKind(asked)} here`,
      );
    },
  );

  it('A key that is a semaphore here and something else there is an error too while only waiters of the other kind are there', async () => {
    const [one, other] = await fixture.pair();
    await fixture.client.hSet(`{${fixture.registryKey}:key}:waiters`, 'write:somebody:1', '1:99999999999999');
    await expect(lockOf.semaphore(one).lock()).rejects.toThrow('It is a read/write lock in Redis');
    await fixture.client.del(`{${fixture.registryKey}:key}:waiters`);
    await (await lockOf.semaphore(other).lock()).unlock();
  });

  it.each(SHARED_KINDS)(
    'A key that is a sorted set of the application stays as it is, and is an error where it is used to %s',
    async (kind) => {
      const registry = await fixture.registry();
      const name = `${fixture.registryKey}:key`;
      const scores = ['job:7', 'anna', 'reader:8', 'z'].map((value, i) => ({
        value,
        score: i < 2 ? i : Date.now() + 60_000 * i,
      }));
      await fixture.client.zAdd(name, scores);
      const lock = lockOf[kind](registry);
      for (const call of [() => lock.tryLock(), () => lock.lock(), () => lock.inspect(), () => lock.forceUnlock()]) {
        await expect(call()).rejects.toThrow('WRONGTYPE');
      }
      await expect(lock.lock()).rejects.toThrow(
        `It is a key of type zset in Redis, and it is used as ${describeKind(kind)} here`,
      );
      expect(await fixture.client.zRangeWithScores(name, 0, -1)).toEqual(scores);
      await fixture.client.del(name);
      const lease = await lock.lock();
      await fixture.client.del(name);
      await fixture.client.zAdd(name, scores);
      await expect(lease.unlock()).rejects.toThrow('was lost');
      expect(await fixture.client.zRangeWithScores(name, 0, -1)).toEqual(scores);
    },
  );
});

describeReal('A key in memory that is used as two things', () => {
  const fixture = SharedFixture.install();
  const uses = {
    'a lock': (registry: BackedLockRegistry) => registry.obtain('key'),
    'a semaphore': lockOf.semaphore,
    'a read/write lock': lockOf.read,
  } as const;
  const names = Object.keys(uses) as (keyof typeof uses)[];
  const pairs = names.flatMap((is) => names.filter((used) => used !== is).map((used) => [is, used] as const));

  describe.each(LOCK_TYPES)('of a registry of type %s', (lockType) => {
    const inMemory = pairsInMemory({ lockType });

    it.each(pairs)(
      'A key in memory that is used as two things of a registry is the error that it is in Redis: %s, used as %s',
      async (is, used) => {
        const [one, other] = inMemory();
        const inRedis = await fixture.pair({ lockType, fairLockWaitTimeout: 500 });
        const refused = await refusal(uses[is](inRedis[0]), uses[used](inRedis[1]));
        const { format, keyType } = traitsOf(lockType);
        // Redis may have data of an application there.
        const there = is === 'a lock' ? describeKeyType(keyType) : is;
        const here = used.replace('a lock', `a lock of type ${lockType}`);
        expect(refused).toMatch(`It is ${there} in Redis, and it is used as ${here} here`);
        expect(await refusal(uses[is](one), uses[used](other))).toBe(
          refused.replace(`${there} in Redis`, `${is === 'a lock' ? describeFormat(format) : is} in memory`),
        );
        expect(await said(uses[is](one), uses[used](other))).toEqual(
          await said(uses[is](inRedis[0]), uses[used](inRedis[1])),
        );
        await (await uses[used](other).lock()).unlock();
      },
    );
  });

  it('A key in memory that is used as two things is an error too for locks of two formats', async () => {
    const locks = new InMemoryLocks();
    const [spin] = pairsInSpin(locks);
    const [redisson] = pairsInRedisson(locks);
    const refused =
      'It is a lock of type spin, pub-sub or fair in memory, and it is used as a lock of type redisson here';
    expect(await refusal(spin.obtain('key'), redisson.obtain('key'))).toContain(refused);
    const wrong = 'LockInspectionError WRONGTYPE';
    expect(await said(spin.obtain('key'), redisson.obtain('key'))).toEqual([wrong, wrong]);
    const lease = await spin.obtain('key').lock();
    expect(await redisson.list().next()).toMatchObject({ done: true });
    await expect(spin.readWrite('key').read.inspect()).rejects.toThrow('used as a semaphore or a read/write lock here');
    await lease.unlock();
  });

  const pairsInSpin = pairsInMemory({ lockType: 'spin' });
  const pairsInRedisson = pairsInMemory({ lockType: 'redisson' });
});
