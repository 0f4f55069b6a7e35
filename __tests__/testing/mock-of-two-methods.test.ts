import { describe, expect, it } from '@jest/globals';
import { LockTimeoutError } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { LOCK_TYPES } from '../support/lock-types';
import { createRegistry } from '../support/test-registry';

/** The mock that docs/testing.md shows. */
class Mock {
  reply: unknown = 1;
  /** The first key of each script. */
  readonly sent: (string | undefined)[] = [];
  readonly #answer = async (_script: string, options?: { keys?: string[] }): Promise<unknown> => {
    this.sent.push(options?.keys?.[0]);
    return this.reply;
  };
  readonly eval = this.#answer;
  readonly evalSha = this.#answer;
}

/** Types with a queue in Redis, whose refusals also say who is in it. */
const QUEUES: ReadonlySet<string> = new Set(['fair', 'redisson-fair']);

describe.each(LOCK_TYPES)('A mock of eval and evalSha, for %s', (lockType) => {
  const start = (fencing = false) => {
    const redis = new Mock();
    const { registry } = createRegistry(redis, { registryKey: 'test', lockType, fencing, idleBetweenTries: 5 });
    return { redis, registry };
  };

  it('A mock of eval and evalSha locks and unlocks, with one script each', async () => {
    const { redis, registry } = start();
    expect(await registry.run('order:42', () => 'done')).toBe('done');
    expect(redis.sent).toEqual(['test:order:42', 'test:order:42']);
    expect((await start(true).registry.obtain('order:42').lock()).fencingToken).toBe(1);
  });

  it('A mock of eval and evalSha renews a lease, by the watchdog and by `renew`', async () => {
    using time = new FakeClock();
    const { registry } = start();
    const lease = await registry.obtain('order:42').lock({ ttl: 3_000, renew: true });
    await time.advance(2_900);
    expect(lease.remaining).toBeGreaterThan(1_000);
    await lease.renew(60_000);
    expect(lease.remaining).toBeGreaterThan(10_000);
    lease.assertHeld();
    await lease.unlock();
    expect(lease.signal.aborted).toBe(false);
  });

  it('A mock of eval and evalSha reports a loss: 0 says that the lock is gone, -1 that somebody else has it', async () => {
    const { redis, registry } = start();
    for (const [reply, reason] of [
      [0, 'expired'],
      [-1, 'stolen'],
    ] as const) {
      redis.reply = 1;
      const [renewed, unlocked] = [await registry.obtain('a').lock(), await registry.obtain('b').lock()];
      redis.reply = reply;
      await expect(renewed.renew()).rejects.toMatchObject({ name: 'LockLostError', reason });
      await expect(unlocked.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason });
    }
  });

  it(`A mock of eval and evalSha refuses a lock${QUEUES.has(lockType) ? ' with an error that says what it answered' : ''}: [ms]`, async () => {
    const { redis, registry } = start();
    redis.reply = [5_000];
    if (QUEUES.has(lockType)) {
      const message = `Redis replied [ 5000 ] to the script "acquire (${lockType})", which cannot return that`;
      await expect(registry.obtain('order:42').tryLock()).rejects.toThrow(message);
    } else {
      expect(await registry.obtain('order:42').tryLock()).toBeNull();
      await expect(registry.obtain('order:42').lock({ waitTime: 50 })).rejects.toThrow(LockTimeoutError);
    }
    redis.reply = 1;
    await registry.run('order:42', () => undefined);
  });
});
