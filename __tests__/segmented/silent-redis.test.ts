import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { CannotAcquireLockError, RedisLockRegistry, type SegmentedLock } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, silence } from '../support/mock-redis';

let registry: RedisLockRegistry;

// Before the clock is restored.
afterEach(async () => {
  const closing = registry.close({ timeout: 0 });
  await time.advance(10_000);
  await closing;
});

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;

beforeEach(() => {
  redis = mockRedis();
  registry = new RedisLockRegistry(redis, { registryKey: 'silent', warnAfter: Infinity, onWarning: () => undefined });
});

it.each<[string, (lock: SegmentedLock) => Promise<unknown>]>([
  ['run', (lock) => lock.run(() => undefined)],
  ['runAcross', (lock) => lock.runAcross(2, { available: () => 1, commit: () => undefined })],
  ['runAll', (lock) => lock.runAll(() => undefined)],
])(
  '%s of segments on a silent Redis ends after unavailableAfter, counted from the call, and says for how long',
  async (_, of) => {
    redis.evalSha.mockImplementation(silence);
    const startedAt = time.now;
    let endedAt = 0;
    const ending = of(registry.segmented('key', { segments: 3 })).catch((error: unknown) => {
      endedAt = time.now;
      return error;
    });
    await time.advance(40_000);
    const error = (await ending) as Error;
    expect(error).toBeInstanceOf(CannotAcquireLockError);
    expect(endedAt - startedAt).toBeGreaterThanOrEqual(9_900);
    expect(endedAt - startedAt).toBeLessThanOrEqual(10_300);
    const [, said] = /Redis has not answered for (\d+) ms/.exec(error.message) ?? [];
    expect(Math.abs(Number(said) - (endedAt - startedAt))).toBeLessThan(50);
  },
);

it('A call for segments that goes on after tasks took long is not said to have waited for a silent Redis', async () => {
  const task = async ({ exhausted }: { exhausted: symbol }) => {
    await new Promise<void>((resolve) => void setTimeout(resolve));
    await time.advance(60_000);
    return exhausted;
  };
  const result = await registry.segmented('key', { segments: 2 }).run(task as never, { renew: false, ttl: 500_000 });
  expect(result).toEqual({ served: false });
});
