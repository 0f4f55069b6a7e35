import { describe, expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { createRegistry } from '../support/test-registry';

/** Commands after which a mock falls silent: without it, retries that never pass through a timer would never end. */
const TOO_MANY = 1_000;

/** Another type, nothing, and an array of another length than any script answers with. */
const nonsense: readonly unknown[] = ['PONG', null, {}, Array.from({ length: 23 }, () => 0)];

/** A mock that grants and releases every lock, until it is given something else to answer. */
class Mock {
  reply: unknown = 1;
  sent = 0;
  readonly #answer = async (): Promise<unknown> => {
    this.sent += 1;
    return this.sent > TOO_MANY ? new Promise(() => {}) : this.reply;
  };
  readonly eval = this.#answer;
  readonly evalSha = this.#answer;
}

/** What an error and its cause say. */
function said(error: unknown): string {
  const { message, cause } = error as Error;
  return [message, (cause as Error | undefined)?.message].join('\n');
}

/** What an error has to quote of a reply, however it writes it. */
function quotes(reply: unknown): RegExp {
  if (Array.isArray(reply)) return /array|\[\s*0,\s*0/i;
  return reply === 'PONG' ? /PONG/ : reply === null ? /null/ : /\{\s*\}/;
}

describe.each(LOCK_TYPES)('A %s lock whose Redis answers with nonsense', (lockType) => {
  const start = () => {
    const redis = new Mock();
    const { registry } = createRegistry(redis, { lockType, commandTimeout: 100, unavailableAfter: 200 });
    return { redis, registry };
  };

  /** A lease of a lock whose scripts answer as they should. */
  const held = async () => {
    const { redis, registry } = start();
    return { redis, registry, lease: await registry.obtain('42').lock({ ttl: 2_000 }) };
  };

  it.each(nonsense)('%j: an acquisition is refused, with what came and from which script', async (reply) => {
    const { redis, registry } = start();
    redis.reply = reply;
    const lock = registry.obtain('42');
    for (const acquire of [() => lock.tryLock(), () => lock.lock({ waitTime: 300 })]) {
      const error = await acquire().catch((reason: unknown) => reason);
      expect(error).toMatchObject({ name: 'CannotAcquireLockError' });
      expect(said(error)).toMatch(quotes(reply));
      expect(said(error)).toMatch(/script/i);
    }
    expect(lock.isAcquiredInThisProcess).toBe(false);
    // Each retry passes through a timer.
    expect(redis.sent).toBeLessThan(TOO_MANY / 2);
  });

  it.each(nonsense)('%j: a renewal is refused, and the lease is as it was', async (reply) => {
    const { redis, lease } = await held();
    redis.reply = reply;
    const before = lease.remaining;
    const error = await lease.renew(60_000).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'CannotAcquireLockError' });
    expect(said(error)).toMatch(quotes(reply));
    expect(lease.signal.aborted).toBe(false);
    expect(lease.remaining).toBeLessThanOrEqual(before);
    expect(lease.remaining).toBeGreaterThan(0);
  });

  it.each(nonsense)('%j: a release is not confirmed', async (reply) => {
    const { redis, lease } = await held();
    redis.reply = reply;
    const error = await lease.unlock().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'LockReleaseError' });
    expect(said(error)).toMatch(quotes(reply));
    expect(redis.sent).toBeLessThan(TOO_MANY / 2);
  });

  it.each(nonsense)('%j: a hand-over to a local caller gives it nothing, and it is refused', async (reply) => {
    const { redis, registry, lease } = await held();
    const outcome = registry
      .obtain('42')
      .lock({ waitTime: 1_500 })
      .catch((reason: unknown) => reason);
    redis.reply = reply;
    await lease.unlock().catch(() => undefined);
    const error = await outcome;
    expect(error).toMatchObject({ name: 'CannotAcquireLockError' });
    expect(said(error)).toMatch(quotes(reply));
    expect(redis.sent).toBeLessThan(TOO_MANY / 2);
    // Once Redis makes sense again, the next caller has the lock.
    redis.reply = 1;
    await (await registry.obtain('42').lock({ waitTime: 1_500 })).unlock();
  });
});

it.each([{}, [], 'PONG'])('once and forget are refused whose Redis answers with %j', async (reply) => {
  const redis = new Mock();
  const { registry } = createRegistry(redis, { commandTimeout: 100 });
  redis.reply = reply;
  const calls = [registry.forget('key')];
  if (typeof reply !== 'string') calls.push(registry.once('key', () => true, { keepFor: 1_000 }));
  for (const call of calls) {
    const error = await call.catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'CannotAcquireLockError' });
    expect(said(error)).toMatch(/result"/);
  }
});
