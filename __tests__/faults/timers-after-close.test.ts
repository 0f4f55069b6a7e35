import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { DistributedLock, LockRegistry, RedisLockRegistry } from '../../lib';
import { LOCK_TYPES } from '../../lib/kinds';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { EVERY_LOCK } from '../support/every-lock';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const real = { setTimeout, setInterval, clearTimeout, clearInterval };

/** Each timer of the library that has neither fired nor been cleared, with where it was set. */
const open = new Map<unknown, string>();

/** Sets a timer as the original does, and notes it. */
function noting(set: typeof setTimeout | typeof setInterval, isOnce: boolean) {
  return (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const where = `${ms} ms: ${new Error().stack
      ?.split('\n')
      .filter((line) => line.includes('/lib/'))
      .join('\n')}`;
    const timer = set(
      (...given: unknown[]) => {
        if (isOnce) open.delete(timer);
        callback(...given);
      },
      ms,
      ...args,
    );
    if (/\/lib\/(?!testing\/fakeable)/.test(where)) open.set(timer, where);
    return timer;
  };
}

beforeEach(() => {
  const clear = (timer: never): void => {
    open.delete(timer);
    real.clearTimeout(timer);
  };
  Object.assign(globalThis, {
    setTimeout: noting(real.setTimeout, true),
    setInterval: noting(real.setInterval, false),
    clearTimeout: clear,
    clearInterval: clear,
  });
});

afterEach(() => {
  Object.assign(globalThis, real);
  open.clear();
});

/** What is left once what is settled already has been noticed. */
async function left(): Promise<string[]> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
  return [...open.values()];
}

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Callers that wait, time out, leave, and get the lock. */
async function contend(
  holders: RedisLockRegistry,
  waiters: RedisLockRegistry,
  { acquire, keepOut = acquire }: (typeof EVERY_LOCK)[number],
) {
  const lease = await keepOut(holders, 'key', {});
  const leaving = new AbortController();
  const both = [holders, waiters];
  await Promise.all(both.map((registry) => failure(acquire(registry, 'key', { waitTime: 40 }))));
  const left = both.map((registry) => failure(acquire(registry, 'key', { signal: leaving.signal })));
  const served = both.map((registry) => acquire(registry, 'key', {}).then((held) => held.unlock()));
  await new Promise((resolve) => real.setTimeout(resolve, 30));
  leaving.abort();
  await Promise.all(left);
  await lease.unlock();
  await Promise.all(served);
}

describePrivate('No timer is left', () => {
  const redis = PrivateRedis.install();

  it.each(EVERY_LOCK.map((one) => [one.name, one] as const))(
    'No timer is left of %s when its registry is closed after callers waited, timed out and left',
    async (_name, any) => {
      const client = await redis.connect();
      const { registry, registryKey } = createRegistry(client, { lockType: any.lockType, warnHeldAfter: 1_000 });
      const other = createRegistry(client, { lockType: any.lockType, registryKey }).registry;
      await contend(registry, other, any);
      await Promise.all([registry.close(), other.close()]);
      expect(await left()).toEqual([]);
      client.destroy();
    },
  );

  it.each(LOCK_TYPES)(
    'No timer is left of %s locks when their registry is closed under holders and waiters, and nothing sets one later',
    async (lockType) => {
      const client = await redis.connect();
      const { registry } = createRegistry(client, { lockType, warnAfter: 10, warnHeldAfter: 10 });
      const locks: DistributedLock[] = [
        registry.obtain('a'),
        registry.semaphore('b', { permits: 1 }),
        registry.readWrite('c').write,
      ];
      const leases = await Promise.all(locks.map((lock) => lock.lock()));
      const waits = locks.map((lock) => failure(lock.lock()));
      await until(async () => (await registry.obtain('a').inspect()).held);
      await registry.close({ timeout: 0 });
      await Promise.all(waits);
      // A warning may just have asked who holds a lock.
      await client.ping();
      expect(await left()).toEqual([]);
      await Promise.all([
        ...leases.map((lease) => failure(lease.unlock())),
        ...locks.map((lock) => failure(lock.lock())),
      ]);
      await failure(
        registry.adopt('lease/1 string detached@web:h0pCmsO5S7mSQpHDOZJ1Sw:1700000000000000 5000 renewed 0 x:y'),
      );
      await failure(registry.once('d', () => 1, { keepFor: 10 }));
      // What these have sent is answered before.
      await client.ping();
      expect(await left()).toEqual([]);
      client.destroy();
    },
  );

  it.each(LOCK_TYPES)(
    'No timer is left of %s locks when their registry is closed while Redis is silent, and its client ended',
    async (lockType) => {
      const client = await redis.connect();
      const { registry } = createRegistry(client, { lockType, commandTimeout: 2_000, warnAfter: 10 });
      const lease = await registry.obtain('held').lock();
      redis.freeze();
      try {
        const calls = ['held', 'other'].map((key) => failure(registry.obtain(key).lock()));
        calls.push(failure(registry.semaphore('many', { permits: 2 }).lock()));
        // More than a client is given while its server is silent.
        const lockSome = (from: number, to: number): void => {
          for (let i = from; i < to; i++) calls.push(failure(registry.obtain(`${i}`).lock()));
        };
        lockSome(0, 300);
        await new Promise((resolve) => real.setTimeout(resolve, 600));
        lockSome(300, 320);
        calls.push(failure(lease.unlock()));
        await until(() => registry.size > 320);
        await Promise.all([registry.close({ timeout: 0 }), ...calls]);
        client.destroy();
        expect(await left()).toEqual([]);
      } finally {
        redis.thaw();
      }
    },
  );
});

describe('No timer is left of locks in memory', () => {
  it.each<[string, (registry: LockRegistry) => DistributedLock]>([
    ['a lock', (registry) => registry.obtain('key')],
    ['a semaphore', (registry) => registry.semaphore('key', { permits: 1 })],
    ['a lock for writing', (registry) => registry.readWrite('key').write],
    ['a lock of two keys', (registry) => registry.multi(['key', 'other'])],
  ])('No timer is left of %s in memory when its registry is closed, also in a silence', async (_name, of) => {
    const locks = new InMemoryLocks();
    const [registry, other] = [new InMemoryLockRegistry({ locks }), new InMemoryLockRegistry({ locks })];
    const lease = await of(registry).lock();
    await failure(of(other).lock({ waitTime: 20 }));
    const waiting = of(other).lock();
    await lease.unlock();
    const next = await waiting;
    const late = failure(of(registry).lock({ waitTime: 10 }));
    await late;
    locks.goSilent();
    const calls = [failure(next.unlock()), failure(of(registry).lock())];
    await Promise.all([registry.close({ timeout: 10 }), other.close({ timeout: 10 }), ...calls]);
    expect(await left()).toEqual([]);
    locks.comeBack();
    expect(await left()).toEqual([]);
  });
});
