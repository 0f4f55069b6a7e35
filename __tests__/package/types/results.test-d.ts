/** Compiled by `npm run typecheck`, never run: what the calls give, and that nothing of it is `any`. */

import type {
  CannotAcquireLockError,
  DistributedLock,
  Lease,
  LockLostError,
  LockOptions,
  LockRegistry,
  LockTimeoutError,
  LockWarning,
  RedisClient,
  RedisLock,
  RedisLockRegistry,
  RedisLockRegistryOptions,
} from '../../../lib';
import type { InstrumentLocksOptions } from '../../../lib/integrations/opentelemetry';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type IsAny<T> = 0 extends 1 & T ? true : false;

function expectType<T extends true>(..._: T[]): void {}

export async function narrowing(registry: RedisLockRegistry): Promise<void> {
  const lock = registry.obtain('42');
  expectType<Equal<typeof lock, RedisLock>>();

  const lease = await lock.lock();
  expectType<Equal<typeof lease, Lease>>();
  expectType<Equal<typeof lease.remaining, number>>();
  expectType<Equal<typeof lease.fencingToken, number | undefined>>();

  const maybe = await lock.tryLock();
  expectType<Equal<typeof maybe, Lease | null>>();
  // @ts-expect-error: it may be null
  maybe.assertHeld();
  if (maybe !== null) expectType<Equal<typeof maybe, Lease>>();
  if (maybe) maybe.assertHeld();

  // What may be null is fit for `await using`, and so is a registry.
  await using held = await lock.tryLock();
  await using closing = registry;
  void [held, closing];
}

export async function results(registry: LockRegistry, lock: DistributedLock): Promise<void> {
  const number = await registry.run('42', () => 42);
  expectType<Equal<typeof number, number>>();
  const text = await lock.run(async (lease) => lease.key);
  expectType<Equal<typeof text, string>>();
  const nothing = await lock.run(() => {});
  expectType<Equal<typeof nothing, void>>();
  const either = await lock.run(async (lease) => (lease.remaining > 0 ? 'yes' : 0));
  expectType<Equal<typeof either, 'yes' | 0>>();
  const chosen = await registry.run<'a' | 'b'>('42', () => 'a');
  expectType<Equal<typeof chosen, 'a' | 'b'>>();
  // @ts-expect-error: a task is a function
  await registry.run('42', 42);
  // @ts-expect-error: its only argument is a lease
  await registry.run('42', (lease: string) => lease);
}

export async function options(lock: DistributedLock): Promise<void> {
  await lock.lock({ ttl: 1, renew: true, waitTime: Number.POSITIVE_INFINITY, signal: AbortSignal.timeout(1) });
  await lock.lock({ ttl: undefined, signal: undefined });
  // @ts-expect-error: an unknown option
  await lock.lock({ timeout: 100 });
  // @ts-expect-error: ms are numbers
  await lock.tryLock({ waitTime: '1s' });
}

export const notGiven: InstrumentLocksOptions = { tracer: undefined, meter: undefined, group: undefined };

export function errors(lost: LockLostError, timeout: LockTimeoutError, failed: CannotAcquireLockError): void {
  expectType<Equal<typeof lost.reason, 'expired' | 'stolen' | 'unconfirmed' | 'closed'>>();
  expectType<Equal<typeof lost.code, 'ERR_LOCK_LOST'>>();
  expectType<Equal<typeof lost.result, unknown>>();
  expectType<Equal<typeof timeout.code, 'ERR_LOCK_TIMEOUT'>>();
  expectType<Equal<typeof timeout.waitTime, number>>();
  expectType<Equal<typeof failed.code, 'ERR_CANNOT_ACQUIRE_LOCK'>>();
  expectType<Equal<typeof failed.key, string | undefined>>();
}

/** The names of the members of T whose type is `any`, or that take or give something of type `any`. */
type AnyIn<T> = {
  [Name in keyof T]-?: IsAny<T[Name]> extends true
    ? Name
    : NonNullable<T[Name]> extends (...args: infer Args) => infer Result
      ? true extends IsAny<Args> | IsAny<Result> | IsAny<Awaited<Result>> | IsAny<Args[number & keyof Args]>
        ? Name
        : never
      : never;
}[keyof T];

expectType<
  Equal<
    | AnyIn<Lease>
    | AnyIn<DistributedLock>
    | AnyIn<LockRegistry>
    | AnyIn<RedisLockRegistry>
    | AnyIn<RedisLock>
    | AnyIn<LockOptions>
    | AnyIn<RedisLockRegistryOptions>
    | AnyIn<RedisClient>
    | AnyIn<LockWarning>
    | AnyIn<LockLostError>,
    never
  >
>();

// The check finds what it looks for.
// biome-ignore lint/suspicious/noExplicitAny: it is what the check is to find
type Anything = any;
interface Careless {
  readonly field: Anything;
  fine(): string;
  argument(value: Anything): void;
  result(): Promise<Anything>;
}
expectType<Equal<AnyIn<Careless>, 'field' | 'argument' | 'result'>>();
