import { inspect } from 'node:util';
import { MAX_DELAY } from './clock';
import { emitProcessWarning, type WarningListener } from './diagnostics';
import type { LockOptions } from './lock-registry';
import { isSubscriber, type RedisSubscriber } from './redis/subscriber';
import {
  conventionsOf,
  isLockType,
  LOCK_TYPES,
  type LockType,
  SHARDED_SUBSCRIPTION_MODES,
  type ShardedSubscriptionMode,
} from './strategies';

export interface RedisLockRegistryOptions {
  /**
   * Prefix of every key in Redis: the lock's name there is `registryKey:key`. May be empty for `redisson` and
   * `redisson-fair`: then the name is the key, as in `redisson.getLock(key)`.
   */
  registryKey: string;
  /** ms; the ttl of a lease that is taken without one. Default 60 000, for `redisson` and `redisson-fair` 30 000. */
  expireAfter?: number | undefined;
  /** Whether the watchdog renews leases that are taken without a ttl. Default `true`. */
  renew?: boolean | undefined;
  /** ms after its acquisition at which the watchdog stops renewing a lease, which then ends with its ttl. Default: no limit. */
  maxHold?: number | undefined;
  /** ms between two attempts while another process holds the key. Default 100. */
  idleBetweenTries?: number | undefined;
  /** How a lock is written in Redis, and how a waiter learns that it is free. Default `'spin'`. */
  lockType?: LockType | undefined;
  /**
   * ms for which one process may pass a lock among its own callers before it gives other processes a chance; 0: never
   * pass it on directly. Default 400 for `spin`, 50 for `pub-sub` and `redisson`; the fair types have a queue in place of it.
   */
  handOver?: number | undefined;
  /** Whether leases carry a fencing token. Default `false`. */
  fencing?: boolean | undefined;
  /**
   * Whether releases are also told and heard on the channel of Spring Integration up to 6.4.7 and 6.5.2, which had one
   * for all locks of a registry. Default `false`.
   */
  legacyChannel?: boolean | undefined;
  /**
   * Whether releases of `redisson` and `redisson-fair` locks go over sharded channels; to be as on the Java side.
   * Default `auto`, as there: on a cluster, if the server has them.
   */
  shardedSubscriptionMode?: ShardedSubscriptionMode | undefined;
  /**
   * ms for which a waiter of a `redisson-fair` lock keeps the first place in the queue without taking the lock; to be as
   * on the Java side. Default 300 000, as there.
   */
  fairLockWaitTimeout?: number | undefined;
  /** How many locks are cached at most; beyond it, the least recently used one that is not in use is forgotten. Default 100 000. */
  cacheCapacity?: number | undefined;
  /** ms; the library's own deadline for one Redis command. Default 5 000. */
  commandTimeout?: number | undefined;
  /** ms; a wait during which Redis has not answered for so long rejects. Default 10 000. */
  unavailableAfter?: number | undefined;
  /**
   * A pub/sub connection of the caller's, for lock types that wait for messages. Default: the client's `duplicate()`,
   * made on the first contended wait; a cluster and a sentinel client listen themselves; a pool cannot.
   */
  subscriber?: RedisSubscriber | undefined;
  /** Told of what is nobody's error. Default: `process.emitWarning`. */
  onWarning?: WarningListener | undefined;
}

export interface SegmentedLockOptions {
  /** Into how many segments the resource is split, from 1 to 16 384: so many callers work at a time. */
  segments: number;
  /** Draws a number from 0 up to below 1: give it a seed to have the same segments drawn again. Default `Math.random`. */
  random?: (() => number) | undefined;
}

/** The options with their defaults filled in. */
export interface RegistrySettings {
  readonly registryKey: string;
  readonly expireAfter: number;
  readonly renew: boolean;
  readonly maxHold: number;
  readonly idleBetweenTries: number;
  readonly lockType: LockType;
  /** `undefined`: as the lock type has it. */
  readonly handOver: number | undefined;
  readonly fencing: boolean;
  readonly legacyChannel: boolean;
  readonly shardedSubscriptionMode: ShardedSubscriptionMode;
  readonly fairLockWaitTimeout: number;
  readonly cacheCapacity: number;
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
  readonly subscriber: RedisSubscriber | undefined;
  readonly onWarning: WarningListener;
}

/** What one call asks for, with the registry's defaults filled in. */
export interface LockRequest {
  readonly ttl: number;
  /** The ttl was given by this call, it is not the registry's default. */
  readonly explicitTtl: boolean;
  readonly renew: boolean;
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
}

type Check<T> = (name: string, value: unknown) => T;

const registryChecks: { [Name in keyof RegistrySettings]: Check<RegistrySettings[Name]> } = {
  registryKey: string,
  expireAfter: duration,
  renew: boolean,
  maxHold: duration,
  idleBetweenTries: duration,
  lockType,
  handOver: notNegative,
  fencing: boolean,
  legacyChannel: boolean,
  shardedSubscriptionMode: oneOf(SHARDED_SUBSCRIPTION_MODES),
  fairLockWaitTimeout: duration,
  cacheCapacity: count,
  commandTimeout: duration,
  unavailableAfter: duration,
  subscriber,
  onWarning: warningListener,
};

const lockChecks: { [Name in keyof Required<LockOptions>]: Check<LockOptions[Name]> } = {
  ttl: duration,
  renew: boolean,
  waitTime: notNegative,
  signal: abortSignal,
};

const segmentedChecks: { [Name in keyof Required<SegmentedLockOptions>]: Check<unknown> } = {
  segments: (name, value) => wholeNumber(name, value, 1, MOST_SEGMENTS),
  random: callback,
};

/** As many as a Redis cluster has slots: more could not spread any further. */
export const MOST_SEGMENTS = 16_384;

export function registrySettings(options: RedisLockRegistryOptions): RegistrySettings {
  checkOptions(registryChecks, options);
  const { lockType = 'spin' } = options;
  const { expireAfter, needsRegistryKey } = conventionsOf(lockType);
  return {
    registryKey: (needsRegistryKey ? nonEmptyString : string)('registryKey', options.registryKey),
    expireAfter: options.expireAfter ?? expireAfter,
    renew: options.renew ?? true,
    maxHold: options.maxHold ?? Number.POSITIVE_INFINITY,
    idleBetweenTries: options.idleBetweenTries ?? 100,
    lockType,
    handOver: options.handOver,
    fencing: options.fencing ?? false,
    legacyChannel: options.legacyChannel ?? false,
    shardedSubscriptionMode: options.shardedSubscriptionMode ?? 'auto',
    fairLockWaitTimeout: options.fairLockWaitTimeout ?? 300_000,
    cacheCapacity: options.cacheCapacity ?? 100_000,
    commandTimeout: options.commandTimeout ?? 5_000,
    unavailableAfter: options.unavailableAfter ?? 10_000,
    subscriber: options.subscriber,
    onWarning: options.onWarning ?? emitProcessWarning,
  };
}

export function lockRequest(
  options: LockOptions | undefined,
  settings: RegistrySettings,
  defaultWaitTime: number,
): LockRequest {
  if (options !== undefined) checkLockOptions(options);
  const ttl = options?.ttl;
  return {
    ttl: ttl ?? settings.expireAfter,
    explicitTtl: ttl !== undefined,
    renew: options?.renew ?? (ttl === undefined && settings.renew),
    waitTime: options?.waitTime ?? defaultWaitTime,
    signal: options?.signal,
  };
}

export function checkLockOptions(options: LockOptions): void {
  checkOptions(lockChecks, options);
}

export function segmentedSettings(options: SegmentedLockOptions): { segments: number; random: () => number } {
  checkOptions(segmentedChecks, options);
  // Given or not: without a number there are no segments.
  const segments = wholeNumber('segments', options.segments, 1, MOST_SEGMENTS);
  return { segments, random: options.random ?? Math.random };
}

/** Checks that every option is known and, where it is given, good: a misspelt option must not silently do nothing. */
function checkOptions(checks: Readonly<Record<string, Check<unknown>>>, options: object): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(expected('options', 'an object', options));
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined) {
      throw new TypeError(
        `Unknown option \`${name}\` (${inspect(value)}); known are ${Object.keys(checks).join(', ')}`,
      );
    }
    if (value !== undefined) check(name, value);
  }
}

export function nonEmptyString(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new TypeError(expected(name, 'a non-empty string', value));
  return value;
}

function string(name: string, value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(expected(name, 'a string', value));
  return value;
}

/** A positive number of ms that a timer and Redis can bear. */
export function duration(name: string, value: unknown): number {
  const ms = number(name, value);
  if (!(ms > 0 && ms <= MAX_DELAY)) {
    throw new RangeError(expected(name, `a positive number of milliseconds, at most ${MAX_DELAY}`, value));
  }
  return ms;
}

/** A number of ms from 0 up; `Infinity` is one. */
export function notNegative(name: string, value: unknown): number {
  const ms = number(name, value);
  if (!(ms >= 0)) throw new RangeError(expected(name, 'a number of milliseconds from 0 up, Infinity included', value));
  return ms;
}

function count(name: string, value: unknown): number {
  const many = number(name, value);
  if (!(Number.isInteger(many) && many > 0 && many <= MAX_DELAY)) {
    throw new RangeError(expected(name, `a positive whole number, at most ${MAX_DELAY}`, value));
  }
  return many;
}

export function wholeNumber(name: string, value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): number {
  const whole = number(name, value);
  if (!(Number.isInteger(whole) && whole >= least && whole <= most)) {
    throw new RangeError(expected(name, `a whole number from ${least} to ${most}`, value));
  }
  return whole;
}

export function number(name: string, value: unknown): number {
  if (typeof value !== 'number') throw new TypeError(expected(name, 'a number', value));
  return value;
}

function boolean(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new TypeError(expected(name, 'a boolean', value));
  return value;
}

function oneOf<T extends string>(values: readonly T[]): Check<T> {
  return (name, value) => {
    const known = values.find((one) => one === string(name, value));
    if (known === undefined) throw new RangeError(expected(name, `one of ${values.join(', ')}`, value));
    return known;
  };
}

function lockType(name: string, value: unknown): LockType {
  if (typeof value !== 'string') throw new TypeError(expected(name, 'a string', value));
  if (!isLockType(value)) throw new RangeError(expected(name, `one of ${LOCK_TYPES.join(', ')}`, value));
  return value;
}

/** By structure: a signal may come from another realm, a test environment's for one. */
function abortSignal(name: string, value: unknown): AbortSignal {
  const signal = value as Partial<AbortSignal> | null;
  if (typeof signal?.aborted !== 'boolean' || typeof signal.addEventListener !== 'function') {
    throw new TypeError(expected(name, 'an AbortSignal', value));
  }
  return value as AbortSignal;
}

function subscriber(name: string, value: unknown): RedisSubscriber {
  if (!isSubscriber(value))
    throw new TypeError(expected(name, 'a client with the methods subscribe and unsubscribe', value));
  return value;
}

function warningListener(name: string, value: unknown): WarningListener {
  callback(name, value);
  return value as WarningListener;
}

export function callback(name: string, value: unknown): void {
  if (typeof value !== 'function') throw new TypeError(expected(name, 'a function', value));
}

/** The one form of our complaints about arguments: what was expected, and the value that came instead. */
export function expected(name: string, what: string, value: unknown): string {
  return `Expected \`${name}\` to be ${what}, got ${inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY })} (${value === null ? 'null' : typeof value})`;
}
