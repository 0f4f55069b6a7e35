import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Lease, type LockWarning, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis } from '../support/mock-redis';

// Before the clock is restored.
afterEach(async () => {
  const closing = Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
  await time.advance(1);
  await closing;
});

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let warnings: LockWarning[];
const registries: RedisLockRegistry[] = [];

beforeEach(() => {
  redis = mockRedis();
  warnings = [];
});

function open(options: Partial<RedisLockRegistryOptions> = {}): RedisLockRegistry {
  const registry = new RedisLockRegistry(redis, {
    registryKey: 'unit',
    ...options,
    onWarning: (warning) => warnings.push(warning),
  });
  registries.push(registry);
  return registry;
}

describe('A lease', () => {
  let lease: Lease;
  let losses: number;

  async function take(options: Partial<RedisLockRegistryOptions> = {}, ttl?: number): Promise<Lease> {
    lease = await open(options).obtain('key').lock({ ttl });
    losses = 0;
    lease.signal.addEventListener('abort', () => losses++);
    return lease;
  }

  it('counts a renewal from before its request was sent (P3)', async () => {
    await take({}, 10_000);
    const reply = lateReply();
    redis.evalSha.mockReturnValueOnce(reply.promise);
    const renewing = lease.renew();
    await time.advance(4_000);
    reply.resolve([10_000]);
    await renewing;
    expect(lease.remaining).toBe(10_000 - 11 - 4_000);
  });

  it('does not abort its signal after a successful unlock, for any reply to a renewal in flight (P7)', async () => {
    await take({ expireAfter: 3_000 });
    const reply = lateReply();
    redis.evalSha.mockReturnValueOnce(reply.promise);
    await time.advance(1_000);
    await lease.unlock();
    const sent = redis.sent;
    reply.resolve([-1]);
    await time.advance(60_000);
    expect(losses).toBe(0);
    expect(lease.signal.aborted).toBe(false);
    expect(redis.sent).toBe(sent);
    expect(warnings).toEqual([]);
  });

  it('is not affected by a wall clock that drifts slowly (P12)', async () => {
    await take({}, 60_000);
    for (let i = 0; i < 50; i++) {
      time.wallNow += 1;
      await time.advance(100);
      expect(lease.remaining).toBeGreaterThan(0);
    }
  });
});
