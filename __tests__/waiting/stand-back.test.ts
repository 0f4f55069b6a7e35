import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { Lease, RedisLock } from '../../lib';
import { Lateness } from '../../support/lateness';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createProxiedRegistry, type ProxiedRegistry } from '../support/proxied-registry';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const KEY = 'key';

/** ms that the reply to a release takes. */
const SLOW = 1_000;

/** ms for which a free lock may be left alone, and what round trips and a busy machine may add. */
const LONGEST = 200;
const SLACK = 400;

/** The types in which a process that gives up a lock lets others go first. */
const TYPES = ['pub-sub', 'redisson'] as const;

interface Contenders {
  /** Its commands pass through a proxy. */
  readonly slow: ProxiedRegistry;
  readonly lock: RedisLock;
  readonly others: readonly RedisLock[];
}

describePrivate.each(TYPES)('A %s lock that a process gave up to others', (lockType) => {
  const redis = PrivateRedis.install();

  const start = async (others: number): Promise<Contenders> => {
    const options = { registryKey: uniqueKey('stand-back'), lockType, idleBetweenTries: 100 };
    const slow = await createProxiedRegistry(redis, options);
    const lock = slow.registry.obtain(KEY);
    const rest = await Promise.all(
      Array.from({ length: others }, async () => createRegistry(await redis.connect(), options).registry.obtain(KEY)),
    );
    // From now on the server knows the scripts.
    const first = await lock.lock();
    const second = lock.lock();
    await sleep(20);
    await first.unlock();
    await (await second).unlock();
    return { slow, lock, others: rest };
  };

  /** The slow process holds the lock past its slice of time; one of its own callers waits, and one in each other process. */
  const contended = async ({ lock, others }: Contenders) => {
    const before = await (others[0] as RedisLock).lock();
    const holding = lock.lock();
    await sleep(100); // it listens
    await before.unlock();
    const lease = await holding;
    const next = lock.lock();
    const served = others.map(async (other) => (await other.lock()).unlock());
    await sleep(150);
    return { lease, next, served };
  };

  const isFree = async ({ slow }: Contenders) => (await redis.admin.exists(slow.nameOf(KEY))) === 0;

  /** ms until the lease is there, without what the machine was late by. */
  const waited = async (next: Promise<Lease>): Promise<number> => {
    const lateness = new Lateness();
    const since = performance.now();
    const lease = await next;
    const elapsed = performance.now() - since - lateness.worst;
    lateness.stop();
    await lease.unlock();
    return elapsed;
  };

  it.each([1, 3])('is not left alone because the reply was slow, with %d others', async (others) => {
    const contenders = await start(others);
    const { lease, next, served } = await contended(contenders);
    contenders.slow.commands.replies.hold = true;
    const unlocking = lease.unlock();
    await Promise.all(served);
    await until(() => isFree(contenders));
    await sleep(SLOW);
    contenders.slow.commands.replies.hold = false;
    expect(await waited(next)).toBeLessThan(LONGEST + SLACK);
    await unlocking;
  });

  it('is not left alone because the event loop was blocked', async () => {
    const contenders = await start(1);
    const { lease, next, served } = await contended(contenders);
    const unlocking = lease.unlock();
    await new Promise(setImmediate); // the request is written
    const end = performance.now() + SLOW;
    while (performance.now() < end);
    expect(await waited(next)).toBeLessThan(LONGEST + SLACK);
    await Promise.all([unlocking, ...served]);
  });

  it('is waited for as before, once a second has passed since the slow reply', async () => {
    const contenders = await start(1);
    const [other] = contenders.others as [RedisLock];
    // Many messages are received while this subscription lasts.
    const busyUntil = performance.now() + 300;
    const work = async (lock: RedisLock) => {
      while (performance.now() < busyUntil) await lock.run(() => sleep(1));
    };
    await Promise.all([work(contenders.lock), work(contenders.lock), work(other), work(other)]);
    const { lease, next, served } = await contended(contenders);
    contenders.slow.commands.replies.hold = true;
    const unlocking = lease.unlock();
    await Promise.all(served);
    await sleep(SLOW);
    contenders.slow.commands.replies.hold = false;
    await unlocking;
    await (await next).unlock();
    const waits: number[] = [];
    for (let i = 0; i < 3; i++) {
      await sleep(1_100); // what is remembered for a second, the subscription too, is forgotten
      const held = await other.lock();
      const waiting = contenders.lock.lock();
      await sleep(150);
      await held.unlock();
      waits.push(await waited(waiting));
    }
    // A process that is slow for reasons of its own is so now and then; one that stands back is so each time.
    expect(Math.min(...waits)).toBeLessThan(LONGEST);
  });
});
