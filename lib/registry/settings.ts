import { publishingWarnings } from '../api/diagnostics';
import { LOCK_TYPES, type LockType, traitsOf } from '../api/lock-types';
import type { RedisLockRegistryOptions, RegistryOptions, RegistrySettings } from '../api/options';
import { assertNameFits, defaultName, registryName } from '../api/owner-name';
import { emitProcessWarning } from '../api/warnings';
import {
  boolean,
  type Checks,
  callback,
  count,
  duration,
  durationOrNever,
  expected,
  oneOf,
  renewedTtl,
  string,
  ttl,
} from '../internal/validation';
import { UNAVAILABLE_AFTER } from '../redis/silence-times';

/** The checks of the options that every registry has, and of its key. */
export const registryChecks: Checks<RegistryOptions & { registryKey: string }> = {
  registryKey: string,
  name: registryName,
  lockType: oneOf(LOCK_TYPES),
  expireAfter: ttl,
  renew: boolean,
  maxHold: duration,
  fencing: boolean,
  inbox: boolean,
  cacheCapacity: count,
  commandTimeout: duration,
  unavailableAfter: duration,
  maxWaiting: count,
  warnAfter: durationOrNever,
  warnHeldAfter: durationOrNever,
  captureStack: boolean,
  onWarning: callback,
};

const DEFAULTS = {
  renew: true,
  maxHold: Number.POSITIVE_INFINITY,
  idleBetweenTries: 100,
  handOver: undefined,
  sharedWithPollers: false,
  fencing: false,
  inbox: false,
  legacyChannel: false,
  shardedSubscriptionMode: 'auto',
  fairLockWaitTimeout: 300_000,
  cacheCapacity: 100_000,
  commandTimeout: 5_000,
  unavailableAfter: UNAVAILABLE_AFTER,
  minReplicas: 0,
  replicaTimeout: 100,
  maxWaiting: Number.POSITIVE_INFINITY,
  warnAfter: 30_000,
  warnHeldAfter: Number.POSITIVE_INFINITY,
  captureStack: false,
  subscriber: undefined,
} as const;

/** Fills in the defaults of options that were checked. The warnings are published too. */
export function registrySettings(options: RedisLockRegistryOptions, defaultLockType: LockType): RegistrySettings {
  const { lockType = defaultLockType, onWarning = emitProcessWarning } = options;
  const { expireAfter, needsRegistryKey, nameSeparator } = traitsOf(lockType);
  if (options.name !== undefined) assertNameFits(options.name, nameSeparator);
  const registryKey = string('registryKey', options.registryKey);
  if (needsRegistryKey && registryKey === '') {
    throw new TypeError(expected('registryKey', `a non-empty string with lockType "${lockType}"`, registryKey));
  }
  const { name = defaultName(nameSeparator) } = options;
  const settings: RegistrySettings = {
    ...DEFAULTS,
    expireAfter,
    ...(options as Partial<RegistrySettings>),
    registryKey,
    name,
    lockType,
    onWarning: publishingWarnings(registryKey, lockType, onWarning),
  };
  if (settings.renew) renewedTtl('expireAfter', settings.expireAfter);
  return settings;
}
