import { inspect } from 'node:util';
import { expect, it } from '@jest/globals';
import {
  CannotAcquireLockError,
  LeaseEvalError,
  LockError,
  LockInspectionError,
  LockLostError,
  LockQueueFullError,
  LockReleaseError,
  LockTimeoutError,
  type LockWarning,
  NotLockOwnerError,
  RedisLockRegistry,
  RegistryClosedError,
} from '../../lib';
import { LockNames } from '../../lib/redis/names';
import { InMemoryLockRegistry } from '../../lib/testing';
import { mockRedis, refused } from '../support/mock-redis';
import { until } from '../support/until';

const cause = new Error('ECONNRESET');

it('The messages of errors and warnings are in one line, whatever is in the key', async () => {
  const key = 'a\n\x1b[2Jb\x9b';
  expect(new LockTimeoutError(key, 100)).toMatchObject({
    key,
    message: 'Lock "a\\n\\x1B[2Jb\\x9B" was not free within 100 ms',
  });
  const warnings: LockWarning[] = [];
  const registry = new InMemoryLockRegistry({ warnHeldAfter: 1, onWarning: (warning) => void warnings.push(warning) });
  const lease = await registry.obtain(key).lock();
  await until(() => warnings.length > 0);
  expect(warnings[0]).toMatchObject({ key, message: expect.stringContaining('lock "a\\n\\x1B[2Jb\\x9B" for') });
  await lease.unlock();
});

it.each([
  ['a line separator', '\u2028', '\\u{2028}'],
  ['a paragraph separator', '\u2029', '\\u{2029}'],
  ['a change of the direction of text', '\u202e', '\\u{202E}'],
  ['a character without width', '\u200b', '\\u{200B}'],
  ['half a character', '\ud800', '\\ud800'],
  ['a tag that is not seen', '\u{e0041}', '\\u{E0041}'],
])('Messages show %s of a key, and nothing changes around it', async (_what, character, shown) => {
  const key = `a${character}b`;
  const escaped = `a${shown}b`;
  const registry = new InMemoryLockRegistry();
  const lock = registry.obtain(`é漢😀 a${character.isWellFormed() ? character : '\u2028'}b`);
  expect(new LockTimeoutError(key, 1).message).toContain(`"${escaped}"`);
  await expect(registry.obtain('k').lock({ [key]: 1 } as object)).rejects.toThrow(`\`${escaped}\``);
  expect(() => new InMemoryLockRegistry({ lockType: key as never })).toThrow(escaped);
  expect(() => LockNames.checked('', `{x}:fence:${key}`)).toThrow(escaped);
  const lease = await lock.lock();
  expect(inspect([lock, lease])).not.toMatch(/[\u2028\u2029\u202e\u200b\ud800\u{e0041}]/u);
  expect(inspect(lock)).toContain('é漢😀');
  await lease.unlock();
});

it.each([
  [new CannotAcquireLockError('text', '42', { cause }), 'CannotAcquireLockError', 'ERR_CANNOT_ACQUIRE_LOCK', cause],
  [new LockTimeoutError('42', 100), 'LockTimeoutError', 'ERR_LOCK_TIMEOUT', undefined],
  [new LockQueueFullError('42', 100), 'LockQueueFullError', 'ERR_LOCK_QUEUE_FULL', undefined],
  [new LockLostError('42', 'stolen'), 'LockLostError', 'ERR_LOCK_LOST', undefined],
  [new LockReleaseError('text', '42', { cause }), 'LockReleaseError', 'ERR_LOCK_RELEASE', cause],
  [new LockInspectionError('text', '42', { cause }), 'LockInspectionError', 'ERR_LOCK_INSPECTION', cause],
  [new LeaseEvalError('text', '42', { cause }), 'LeaseEvalError', 'ERR_LEASE_EVAL', cause],
  [new NotLockOwnerError('text', '42'), 'NotLockOwnerError', 'ERR_NOT_LOCK_OWNER', undefined],
  [new RegistryClosedError('text', '42'), 'RegistryClosedError', 'ERR_REGISTRY_CLOSED', undefined],
] as const)(
  "%s is a LockError with its name, its code, its cause and the user's key",
  (error, name, code, causeOfIt) => {
    expect(error).toBeInstanceOf(LockError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name, code, key: '42' });
    expect(error.cause).toBe(causeOfIt);
    expect(String(error)).toMatch(new RegExp(`^${name}: `));
  },
);

it('An error keeps its name when a minifier has renamed the class', () => {
  const original = LockTimeoutError.name;
  Object.defineProperty(LockTimeoutError, 'name', { value: 'a', configurable: true });
  try {
    expect(new LockTimeoutError('42', 100).name).toBe('LockTimeoutError');
  } finally {
    Object.defineProperty(LockTimeoutError, 'name', { value: original, configurable: true });
  }
});

it('An error passes its name on to a subclass, which may set its own', () => {
  const Renamed = class extends LockTimeoutError {};
  const Own = class extends LockTimeoutError {
    override readonly name = 'OrderTimeoutError';
  };
  expect(new Renamed('42', 100).name).toBe('LockTimeoutError');
  expect(new Own('42', 100).name).toBe('OrderTimeoutError');
});

it.each([
  [new LockTimeoutError('order 42', 1_500), ['"order 42"', '1500 ms']],
  [new LockLostError('order 42', 'expired'), ['"order 42"', 'expired']],
  [new LockLostError('order 42', 'unconfirmed'), ['"order 42"', 'unconfirmed']],
  [new LockLostError('order 42', 'closed'), ['"order 42"', 'closed']],
])('An error says what happened to which key: %s', (error, parts) => {
  for (const part of parts) expect(error.message).toContain(part);
});

it('An error is a new instance every time, so that its stack shows the caller', async () => {
  const redis = mockRedis();
  redis.evalSha.mockResolvedValue(refused(60_000));
  const lock = new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42');
  const errors = await Promise.all([1, 2].map(() => lock.lock({ waitTime: 0 }).catch((error: unknown) => error)));
  expect(errors[0]).toBeInstanceOf(LockTimeoutError);
  expect(errors[1]).toBeInstanceOf(LockTimeoutError);
  expect(errors[0]).not.toBe(errors[1]);
});

it('An error is a new instance for each call that reports one loss', async () => {
  const redis = mockRedis();
  const lease = await new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42').lock({ ttl: 5 });
  await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
  const caught = (act: () => void): unknown => {
    try {
      return act();
    } catch (error) {
      return error;
    }
  };
  const losses = [caught(() => lease.assertHeld()), caught(() => lease.assertHeld()), lease.signal.reason];
  for (const loss of losses) expect(loss).toBeInstanceOf(LockLostError);
  expect(new Set(losses).size).toBe(3);
});
