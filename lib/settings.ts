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
import type { ListOptions, RegistryOptions, SegmentedLockOptions } from './options';
import { assertNameFits, defaultName, registryName } from './owner-name';
import { LOCK_TYPES, type LockType, traitsOf } from './protocols/lock-type-traits';
import type { SharedKind } from './protocols/semaphore-read-write/shared-kinds';
import { emitProcessWarning, type WarningListener } from './warnings';

/** The options that every registry has, with their defaults filled in. */
export interface RegistrySettings {
  readonly registryKey: string;
  readonly name: string;
  readonly expireAfter: number;
  readonly renew: boolean;
  readonly maxHold: number;
  readonly lockType: LockType;
  readonly fencing: boolean;
  readonly cacheCapacity: number;
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
  readonly warnAfter: number;
  readonly onWarning: WarningListener;
}

/** How many replicas have to have a lock, and how long they have for it, in ms. 0: none, as for locks in memory. */
export interface ReplicationSettings {
  readonly minReplicas: number;
  readonly replicaTimeout: number;
}

/** The settings of the locks of one kind. */
export type KindSettings = Omit<RegistrySettings, 'lockType'> & { readonly lockType: LockType | SharedKind };

/** What one call asks for, with the registry's defaults filled in. */
export interface LockRequest {
  readonly ttl: number;
  /** The ttl was given by this call; it is not the registry's default. */
  readonly explicitTtl: boolean;
  readonly renew: boolean;
  readonly waitTime: number;
  /** ms; 0: none. */
  readonly minHold: number;
  /** Of a semaphore; 1 for other locks. */
  readonly permits: number;
  readonly signal: AbortSignal | undefined;
}

/** The checks of the options that every registry has. */
export const registryChecks: { [Name in keyof RegistrySettings]: Check<RegistrySettings[Name]> } = {
  registryKey: string,
  name: registryName,
  expireAfter: ttl,
  renew: boolean,
  maxHold: duration,
  lockType: oneOf(LOCK_TYPES),
  fencing: boolean,
  cacheCapacity: count,
  commandTimeout: duration,
  unavailableAfter: duration,
  warnAfter: durationOrNever,
  onWarning: warningListener,
};

const lockChecks: { [Name in keyof Required<LockOptions>]: Check<LockOptions[Name]> } = {
  ttl,
  renew: boolean,
  waitTime: notNegative,
  minHold: notNegative,
  permits: (name, value) => wholeNumber(name, value, 1),
  signal: abortSignal,
};

/** A Redis cluster has this many slots: more segments could not spread any further. */
export const MOST_SEGMENTS = 16_384;

const segmentedChecks: { [Name in keyof Required<SegmentedLockOptions>]: Check<unknown> } = {
  segments: (name, value) => wholeNumber(name, value, 1, MOST_SEGMENTS),
  random: callback,
};

/** Fills in the defaults of options that were checked. */
export function registrySettings(
  options: RegistryOptions & { readonly registryKey: string },
  defaultLockType: LockType,
): RegistrySettings {
  const { lockType = defaultLockType } = options;
  const { expireAfter, needsRegistryKey, nameSeparator } = traitsOf(lockType);
  if (options.name !== undefined) assertNameFits(options.name, nameSeparator);
  return {
    registryKey: (needsRegistryKey ? nonEmptyString : string)('registryKey', options.registryKey),
    name: options.name ?? defaultName(nameSeparator),
    expireAfter: options.expireAfter ?? expireAfter,
    renew: options.renew ?? true,
    maxHold: options.maxHold ?? Number.POSITIVE_INFINITY,
    lockType,
    fencing: options.fencing ?? false,
    cacheCapacity: options.cacheCapacity ?? 100_000,
    commandTimeout: options.commandTimeout ?? 5_000,
    unavailableAfter: options.unavailableAfter ?? 10_000,
    warnAfter: options.warnAfter ?? 30_000,
    onWarning: options.onWarning ?? emitProcessWarning,
  };
}

/** `mostPermits`: of a semaphore. */
export function lockRequest(
  options: LockOptions | undefined,
  settings: Pick<RegistrySettings, 'expireAfter' | 'renew'>,
  defaultWaitTime: number,
  mostPermits = 1,
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
    permits: options?.permits === undefined ? 1 : wholeNumber('permits', options.permits, 1, mostPermits),
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

function warningListener(name: string, value: unknown): WarningListener {
  callback(name, value);
  return value as WarningListener;
}
