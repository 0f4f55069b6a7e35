import { expect, it, jest } from '@jest/globals';
import * as library from '../../lib';
import * as failures from '../../lib/redis/failure';
import * as testing from '../../lib/testing';

/** Another copy of a module and of all that it loads, as a bundler makes one for each route. */
function copyOf<T>(load: () => T): T {
  let copy: T | undefined;
  jest.isolateModules(() => {
    copy = load();
  });
  return copy as T;
}

const other = copyOf(() => require('../../lib') as typeof library);
const otherTesting = copyOf(() => require('../../lib/testing') as typeof testing);

const ERRORS = {
  CannotAcquireLockError: new library.CannotAcquireLockError('text', 'key'),
  LeaseEvalError: new library.LeaseEvalError('text', 'key'),
  LockAskedError: new library.LockAskedError('key', 'me', 'why'),
  LockInspectionError: new library.LockInspectionError('text', 'key'),
  LockLostError: new library.LockLostError('key', 'stolen'),
  LockQueueFullError: new library.LockQueueFullError('key', 1),
  LockReleaseError: new library.LockReleaseError('text', 'key'),
  LockTimeoutError: new library.LockTimeoutError('key', 1),
  NotLockOwnerError: new library.NotLockOwnerError('text', 'key'),
  NotReplicatedError: new library.NotReplicatedError(1, 0, 100),
  RegistryClosedError: new library.RegistryClosedError('text', 'key'),
};
/** Without this, the tests would try nothing. */
it('The two copies have classes of their own', () => {
  expect(other.LockError).not.toBe(library.LockError);
});

const NAMES = Object.keys(ERRORS) as (keyof typeof ERRORS)[];

it('Every class of errors is known to this test', () => {
  const all = Object.entries(library).filter(
    ([, value]) => (value as { prototype?: unknown }).prototype instanceof Error,
  );
  expect(all.map(([name]) => name).sort()).toEqual([...NAMES, 'LockError'].sort());
});

it.each(NAMES)('An instance of %s is one for every copy of the library, and one of no other class', (name) => {
  const error = ERRORS[name];
  for (const { LockError, ...copy } of [library, other]) {
    expect(NAMES.filter((one) => error instanceof copy[one])).toEqual([name]);
    expect(error).toBeInstanceOf(LockError);
    expect(error).toBeInstanceOf(Error);
  }
});

it("A subclass of the application's has its own instances, which are instances of the class that it extends", () => {
  class OrderTimeoutError extends library.LockTimeoutError {}
  class PaymentTimeoutError extends OrderTimeoutError {}
  abstract class ShopError extends library.LockError {}
  const [order, payment] = [new OrderTimeoutError('key', 1), new PaymentTimeoutError('key', 1)];
  for (const error of [order, payment]) {
    for (const copy of [library, other]) {
      expect(error).toBeInstanceOf(copy.LockTimeoutError);
      expect(error).toBeInstanceOf(copy.LockError);
      expect(error).not.toBeInstanceOf(copy.LockLostError);
    }
    expect(error).toBeInstanceOf(OrderTimeoutError);
    expect(error).not.toBeInstanceOf(ShopError);
  }
  expect(payment).toBeInstanceOf(PaymentTimeoutError);
  expect(order).not.toBeInstanceOf(PaymentTimeoutError);
  for (const copy of [library, other])
    expect(new copy.LockTimeoutError('key', 1)).not.toBeInstanceOf(OrderTimeoutError);
});

it('What is no LockTimeoutError is no instance of that, whatever it is', () => {
  const { LockTimeoutError } = library;
  const like = Object.assign(new Error('text'), { name: 'LockTimeoutError', code: 'ERR_LOCK_TIMEOUT' });
  const primitives = [undefined, null, 'LockTimeoutError', 5, Symbol('LockTimeoutError')];
  const objects = [
    {},
    Object.create(null),
    () => 1,
    new Error('text'),
    like,
    LockTimeoutError,
    LockTimeoutError.prototype,
  ];
  for (const value of [...primitives, ...objects] as unknown[])
    for (const copy of [library, other]) expect(value instanceof copy.LockTimeoutError).toBe(false);
});

it('A registry, and its locks, are instances of their classes in every copy of the library', () => {
  const registry = new testing.InMemoryLockRegistry();
  const segmented = registry.segmented('key', { segments: 2 });
  class Fake extends library.LockRegistry {
    obtain = () => registry.obtain('key');
  }
  for (const copy of [library, other]) {
    expect(registry).toBeInstanceOf(copy.LockRegistry);
    expect(new Fake()).toBeInstanceOf(copy.LockRegistry);
    expect(registry).not.toBeInstanceOf(copy.RedisLockRegistry);
    expect(segmented).toBeInstanceOf(copy.SegmentedLock);
  }
  expect(registry).toBeInstanceOf(otherTesting.InMemoryLockRegistry);
  expect(new Fake()).not.toBeInstanceOf(otherTesting.InMemoryLockRegistry);
});

it('Locks in memory of one copy are shared by registries of two, also while they are silent', async () => {
  const locks = new testing.InMemoryLocks();
  const options = { locks, commandTimeout: 20, unavailableAfter: 60, onWarning: () => undefined };
  const [one, two] = [new testing.InMemoryLockRegistry(options), new otherTesting.InMemoryLockRegistry(options)];
  await one.run('key', async () => {
    const late = two.obtain('key').lock({ waitTime: 10 });
    await expect(late).rejects.toBeInstanceOf(library.LockTimeoutError);
  });
  locks.goSilent();
  const failure = await two
    .obtain('key')
    .lock()
    .catch((error: Error) => error);
  expect(failure).toBeInstanceOf(library.CannotAcquireLockError);
  expect((failure as Error).message).toMatch(/Redis has not answered for \d+ ms/);
  locks.comeBack();
  await Promise.all([one, two].map((registry) => registry.close({ timeout: 0 })));
});

it('What an adapter of one copy rejects with is known to the registry of another one', () => {
  const { isFinal, isWithoutEffect, UnexpectedReplyError, NotSentError } = copyOf(
    () => require('../../lib/redis/failure') as typeof failures,
  );
  expect(isFinal(new failures.UnexpectedReplyError('script', 1))).toBe(true);
  expect(isWithoutEffect(new failures.NotSentError(1))).toBe(true);
  expect(new failures.NotSentError(1)).toBeInstanceOf(failures.CommandTimeoutError);
  expect(new failures.CommandTimeoutError(1, Promise.resolve())).not.toBeInstanceOf(NotSentError);
  expect(new failures.NotSentError(1)).not.toBeInstanceOf(UnexpectedReplyError);
});
