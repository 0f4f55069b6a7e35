import type { LockOptions } from './distributed-lock';
import {
  abortSignal,
  boolean,
  type Check,
  callback,
  checkOptions,
  count,
  duration,
  durationOrNever,
  expected,
  nonEmptyString,
  notNegative,
  oneOf,
  string,
  ttl,
  wholeNumber,
} from './internal/validation';
import type { ListOptions, RedisLockRegistryOptions, SegmentedLockOptions } from './options';
import { assertNameFits, defaultName, registryName } from './owner-name';
import { LOCK_TYPES, type LockType, traitsOf } from './protocols/lock-types';
import { type ProtocolSettings, SHARDED_SUBSCRIPTION_MODES } from './protocols/protocol';
import { describeValue } from './redis/client';
import { isSubscriber, type RedisSubscriber } from './redis/subscriber-connection';
import { emitProcessWarning, type WarningListener } from './warnings';

/** The options with their defaults filled in. */
export interface RegistrySettings extends ProtocolSettings {
  readonly registryKey: string;
  readonly name: string;
  readonly expireAfter: number;
  readonly renew: boolean;
  readonly maxHold: number;
  readonly lockType: LockType;
  readonly cacheCapacity: number;
  readonly warnAfter: number;
}

/** What one call asks for, with the registry's defaults filled in. */
export interface LockRequest {
  readonly ttl: number;
  /** The ttl was given by this call; it is not the registry's default. */
  readonly explicitTtl: boolean;
  readonly renew: boolean;
  readonly waitTime: number;
  /** ms; 0: none. */
  readonly minHold: number;
  readonly signal: AbortSignal | undefined;
}

const registryChecks: { [Name in keyof RegistrySettings]: Check<RegistrySettings[Name]> } = {
  registryKey: string,
  name: registryName,
  expireAfter: ttl,
  renew: boolean,
  maxHold: duration,
  idleBetweenTries: duration,
  lockType: oneOf(LOCK_TYPES),
  handOver: notNegative,
  fencing: boolean,
  legacyChannel: boolean,
  shardedSubscriptionMode: oneOf(SHARDED_SUBSCRIPTION_MODES),
  fairLockWaitTimeout: duration,
  cacheCapacity: count,
  commandTimeout: duration,
  unavailableAfter: duration,
  minReplicas: (name, value) => wholeNumber(name, value, 0),
  replicaTimeout: duration,
  warnAfter: durationOrNever,
  subscriber,
  onWarning: warningListener,
};

const lockChecks: { [Name in keyof Required<LockOptions>]: Check<LockOptions[Name]> } = {
  ttl,
  renew: boolean,
  waitTime: notNegative,
  minHold: notNegative,
  signal: abortSignal,
};

/** A Redis cluster has this many slots: more segments could not spread any further. */
export const MOST_SEGMENTS = 16_384;

const segmentedChecks: { [Name in keyof Required<SegmentedLockOptions>]: Check<unknown> } = {
  segments: (name, value) => wholeNumber(name, value, 1, MOST_SEGMENTS),
  random: callback,
};

export function registrySettings(options: RedisLockRegistryOptions): RegistrySettings {
  checkOptions(registryChecks, options);
  const { lockType = 'spin' } = options;
  const { expireAfter, needsRegistryKey, nameSeparator } = traitsOf(lockType);
  if (options.name !== undefined) assertNameFits(options.name, nameSeparator);
  return {
    registryKey: (needsRegistryKey ? nonEmptyString : string)('registryKey', options.registryKey),
    name: options.name ?? defaultName(nameSeparator),
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
    minReplicas: options.minReplicas ?? 0,
    replicaTimeout: options.replicaTimeout ?? 100,
    warnAfter: options.warnAfter ?? 30_000,
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
  const givenTtl = options?.ttl;
  const minHold = options?.minHold ?? 0;
  if (minHold > 0) assertMinHold(minHold, givenTtl ?? settings.expireAfter);
  return {
    ttl: givenTtl ?? settings.expireAfter,
    explicitTtl: givenTtl !== undefined,
    renew: options?.renew ?? (givenTtl === undefined && settings.renew),
    waitTime: options?.waitTime ?? defaultWaitTime,
    minHold,
    signal: options?.signal,
  };
}

/** The ttl is what a process that crashes leaves: it would end first. */
function assertMinHold(minHold: number, ttl: number): void {
  if (minHold > ttl) throw new RangeError(expected('minHold', `at most the ttl of ${ttl} ms`, minHold));
}

export function listSettings(options: ListOptions): { match: string; count: number } {
  checkOptions({ match: nonEmptyString, count }, options);
  return { match: options.match ?? '*', count: options.count ?? 1_000 };
}

export function checkLockOptions(options: LockOptions): void {
  checkOptions(lockChecks, options);
}

export function segmentedSettings(options: SegmentedLockOptions): { segments: number; random: () => number } {
  checkOptions(segmentedChecks, options);
  // Also when it is missing: without a number there are no segments.
  const segments = wholeNumber('segments', options.segments, 1, MOST_SEGMENTS);
  return { segments, random: options.random ?? Math.random };
}

function subscriber(name: string, value: unknown): RedisSubscriber {
  if (!isSubscriber(value)) {
    const expectation = `Expected \`${name}\` to be a client with the methods subscribe and unsubscribe`;
    throw new TypeError(`${expectation}, got ${describeValue(value)}`);
  }
  return value;
}

function warningListener(name: string, value: unknown): WarningListener {
  callback(name, value);
  return value as WarningListener;
}
