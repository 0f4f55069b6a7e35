import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from '@jest/globals';
import { type LockWarning, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import { LoopTurn } from '../../lib/core/lock';
import { wasSuspended } from '../../lib/internal/clock';
import { BOUNDS, constants } from '../../support/bounds';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, refused, sharedRefused, silence } from '../support/mock-redis';

/** Bounds of `lib` that no other test is about: see `support/bounds.ts`. */

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let warnings: LockWarning[];

beforeEach(() => {
  redis = mockRedis();
  warnings = [];
});

const open = (options?: Partial<RedisLockRegistryOptions>) =>
  new RedisLockRegistry(redis, { registryKey: 'bounds', onWarning: (one) => void warnings.push(one), ...options });

/** ms from now until the promise settles. */
async function msOf(promise: Promise<unknown>, step = 5): Promise<number> {
  const start = time.now;
  let ms = Number.POSITIVE_INFINITY;
  void promise.catch(() => undefined).then(() => (ms = time.now - start));
  for (let i = 0; ms === Number.POSITIVE_INFINITY && i < 1_000; i++) await time.advance(step);
  return ms;
}

it('Every number that the inner rooms of lib have a name for is in the list of bounds, with a test that is there', () => {
  expect(Object.keys(BOUNDS)).toEqual(
    constants()
      .map(({ id }) => id)
      .sort(),
  );
  const held = Object.values(BOUNDS).flatMap((bound) => (typeof bound === 'object' ? Object.values(bound) : [bound]));
  const tests = held.filter((one = '') => !one.startsWith('because '));
  expect(tests.filter((test) => !existsSync(join(__dirname, '..', `${test}.test.ts`)))).toEqual([]);
});

it('A process that only polls does so at its usual pace for a second, and then faster while holders change', async () => {
  let remaining = 50_000;
  redis.evalSha.mockImplementation(async () => refused(remaining++, 'another:1'));
  const rejected = expect(open({ sharedWithPollers: true }).obtain('key').lock({ waitTime: 3_000 })).rejects.toThrow(
    'not free',
  );
  await time.advance(1_000);
  expect(redis.sent).toBeLessThanOrEqual(12);
  await time.advance(900);
  expect(redis.sent).toBeGreaterThan(30);
  await time.advance(2_000);
  await rejected;
});

it('An unlock has a quarter of a second to be answered, however little is left of the ttl', async () => {
  const lease = await open().obtain('key').lock({ ttl: 1_000 });
  await time.advance(990);
  redis.evalSha.mockImplementation(silence);
  const ms = await msOf(lease.unlock());
  expect(ms).toBeGreaterThanOrEqual(250);
  expect(ms).toBeLessThan(300);
});

it('An attempt has 50 ms to be answered, however little is left of the wait', async () => {
  redis.evalSha.mockImplementation(silence);
  const ms = await msOf(open().obtain('key').tryLock({ waitTime: 1 }));
  expect(ms).toBeGreaterThanOrEqual(50);
  expect(ms).toBeLessThan(100);
});

it('A hold is passed on without a command for 50 ms after Redis has confirmed it', async () => {
  for (const [ms, commands] of [
    [45, 0],
    [55, 1],
  ] as const) {
    const lock = open().obtain(`key ${ms}`);
    const lease = await lock.lock();
    const next = lock.lock();
    await time.advance(ms);
    const { sent } = redis;
    const unlocked = lease.unlock();
    await time.advance(1);
    await Promise.all([unlocked, next]);
    expect(redis.sent - sent).toBe(commands);
  }
});

it('A ticket of a shared lock is kept for three of the longest pauses between polls, and for 3 s at least', async () => {
  for (const [idleBetweenTries, ms] of [
    [10, 3_000],
    [1_000, 30_000],
  ] as const) {
    redis.evalSha.mockImplementation(async () => sharedRefused(20_000, 2));
    await open({ idleBetweenTries }).semaphore('key', { permits: 2 }).tryLock();
    expect(redis.calls.at(-1)?.arguments).toContain(String(ms));
  }
});

it('A reader may be let in for 100 ms after its attempt', async () => {
  redis.evalSha.mockImplementation(async () => sharedRefused(20_000, 0));
  await open().readWrite('key').read.tryLock();
  expect(redis.calls.at(-1)?.arguments).toContain('100');
});

it('The event loop gets a turn when holds were passed on for 5 ms', () => {
  const turn = new LoopTurn();
  expect([0, 4, 5].map((now) => turn.isDue(now))).toEqual([false, false, true]);
});

it('Waits that become long within a tenth of a second are one warning, and those after that another', async () => {
  const registry = open({ warnAfter: 30_000 });
  const lock = registry.obtain('key');
  await lock.lock();
  const waiting = [lock.lock()];
  for (const ms of [80, 200]) {
    await time.advance(ms);
    waiting.push(lock.lock());
  }
  await time.advance(31_000);
  expect(warnings.map(({ message }) => /^(A|\d+) caller/.exec(message)?.[1])).toEqual(['2', 'A']);
  const closed = registry.close({ timeout: 0 });
  await Promise.allSettled(waiting);
  await closed;
});

it('A clock that jumps by more than 100 ms against the other one shows that the machine was suspended', () => {
  expect([wasSuspended(0, 100), wasSuspended(0, 101)]).toEqual([false, true]);
});

it('A ttl may be as long as a timer of Node, and no longer', async () => {
  const lock = open().obtain('key');
  await (await lock.lock({ ttl: 2_147_483_647 })).unlock();
  await expect(lock.lock({ ttl: 2_147_483_648 })).rejects.toThrow(RangeError);
});

it('A lock of several keys has up to a thousand of them', () => {
  const keys = Array.from({ length: 1_001 }, (_, i) => `key ${i}`);
  expect(open().multi(keys.slice(1)).keys).toHaveLength(1_000);
  expect(() => open().multi(keys)).toThrow(RangeError);
});

it('What an attempt left is removed 50 ms after its caller gave up, and then once a second while that fails', async () => {
  redis.evalSha.mockRejectedValue(new Error('Socket closed unexpectedly')).mockImplementationOnce(silence);
  await msOf(open({ commandTimeout: 300 }).obtain('key').tryLock());
  await time.advance(35);
  expect(redis.sent).toBe(1);
  await time.advance(30);
  expect(redis.sent).toBe(2);
  await time.advance(10_000);
  const { sent } = redis;
  await time.advance(10_000);
  expect(redis.sent - sent).toBe(10);
});

it('close() waits for ten seconds for the holders, and half a second for what is to be removed', async () => {
  const registry = open();
  await registry.obtain('key').lock();
  expect(await msOf(registry.close(), 100)).toBe(10_000);
  redis.evalSha.mockImplementation(silence);
  const other = open();
  void other
    .obtain('key')
    .lock()
    .catch(() => undefined);
  await time.advance(10);
  expect(await msOf(other.close({ timeout: 0 }))).toBe(500);
});
