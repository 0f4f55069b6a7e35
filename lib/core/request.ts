import type { LockOptions } from '../api/distributed-lock';
import { listed, TRAVELLING_TYPES } from '../api/lock-types';
import type { KindSettings } from '../api/options';
import {
  abortSignal,
  boolean,
  type Checks,
  checkedOptions,
  expected,
  notNegative,
  renewedTtl,
  ttl,
  wholeNumber,
} from '../internal/validation';

/** What one call asks for, with the registry's defaults filled in. */
export interface LockRequest {
  readonly ttl: number;
  /** The ttl was given by this call; it is not the registry's default. */
  readonly explicitTtl: boolean;
  readonly renew: boolean;
  readonly waitTime: number;
  /** ms; 0: none. */
  readonly minHold: number;
  /** How many permits of a semaphore; 1 for other locks. */
  readonly permits: number;
  readonly signal: AbortSignal | undefined;
  /** With `replace`: ms that the task of the holder has to end. Absent without. */
  readonly grace?: number;
  /** Where the call was made: with `captureStack`. */
  readonly origin: { readonly stack?: string } | undefined;
}

/** ms */
const GRACE = 5_000;

const CHECKS: Checks<LockOptions> = {
  ttl,
  renew: boolean,
  waitTime: notNegative,
  minHold: notNegative,
  permits: (name, value) => wholeNumber(name, value, 1),
  replace: boolean,
  grace: notNegative,
  signal: abortSignal,
};

export function checkedLockOptions(options: LockOptions): LockOptions {
  return checkedOptions(CHECKS, options);
}

/** The lock that a call is for. */
interface RequestedLock {
  readonly services: { readonly settings: KindSettings };
  readonly mostPermits: number;
}

/** What calls without options ask for: one object for all of them, by their settings and waitTime. */
const withoutOptions = new WeakMap<KindSettings, Map<number, LockRequest>>();

export function lockRequest(given: LockOptions | undefined, lock: RequestedLock, defaultWaitTime: number): LockRequest {
  const { settings } = lock.services;
  if (given !== undefined || settings.captureStack) return newRequest(given, lock, defaultWaitTime);
  const known = withoutOptions.get(settings)?.get(defaultWaitTime);
  if (known !== undefined) return known;
  const request = newRequest(given, lock, defaultWaitTime);
  withoutOptions.set(settings, (withoutOptions.get(settings) ?? new Map()).set(defaultWaitTime, request));
  return request;
}

function newRequest(given: LockOptions | undefined, lock: RequestedLock, defaultWaitTime: number): LockRequest {
  const options = given === undefined ? undefined : checkedLockOptions(given);
  const { settings } = lock.services;
  const givenTtl = options?.ttl;
  const request = {
    ttl: givenTtl ?? settings.expireAfter,
    explicitTtl: givenTtl !== undefined,
    renew: options?.renew ?? (givenTtl === undefined && settings.renew),
    waitTime: options?.waitTime ?? defaultWaitTime,
    minHold: options?.minHold ?? 0,
    permits: options?.permits === undefined ? 1 : wholeNumber('permits', options.permits, 1, lock.mostPermits),
    signal: options?.signal,
    origin: settings.captureStack ? here() : undefined,
  };
  if (request.renew) renewedTtl(request.explicitTtl ? 'ttl' : 'expireAfter', request.ttl);
  // The ttl is what a process that crashes leaves: it would end first.
  if (request.minHold > request.ttl) {
    throw new RangeError(expected('minHold', `at most the ttl of ${request.ttl} ms`, request.minHold));
  }
  if (options?.replace !== true) return request;
  assertReplaceable(settings.lockType);
  return { ...request, grace: options.grace ?? GRACE };
}

/** Throws `TypeError` for what cannot be taken from its holder. */
export function assertReplaceable(what: string): void {
  if (TRAVELLING_TYPES.some((type) => type === what)) return;
  const only = `only a lock of type ${listed(TRAVELLING_TYPES)} is replaced`;
  throw new TypeError(`Expected \`replace\` to be false for the type ${what}, got true: ${only}`);
}

/** The stack is made a text only when it is read. */
function here(): { readonly stack?: string } {
  const origin: { readonly stack?: string } = {};
  Error.captureStackTrace(origin, lockRequest);
  return origin;
}
