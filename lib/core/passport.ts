import { inspect } from 'node:util';
import { describeFormat, LOCK_FORMATS, type LockFormat, listed, TRAVELLING_TYPES } from '../api/lock-types';
import { isDetached, isOwner } from '../api/owner-name';
import { MAX_DELAY, MIN_TTL } from '../internal/clock';
import { expected, inOneLine } from '../internal/validation';
import type { Travel } from './protocol';

/** A lease that travels. Its text is what `Lease.detach` returns. Durations are in ms. */
export interface Passport {
  /** How its lock is written: processes with different types of one format have the same locks. */
  readonly format: LockFormat;
  /** The value in Redis under which it can be adopted. */
  readonly owner: string;
  readonly ttl: number;
  readonly renew: boolean;
  /** What was left of the `minHold` when it was detached. */
  readonly minHold: number;
  /** The name of its lock in Redis. */
  readonly lock: string;
}

/**
 * `lease/<version> <format> <owner> <ttl> <renewed or fixed> <minHold> <lock>`, in ASCII: it may be a header. An owner value
 * has no spaces.
 */
export function passportText({ format, owner, ttl, renew, minHold, lock }: Passport): string {
  const kind = renew ? 'renewed' : 'fixed';
  return [`lease/${VERSION}`, format, encodeURI(owner), ttl, kind, minHold, encodeURI(lock)].join(' ');
}

const VERSION = '1';
const TEXT = /^lease\/1 (\S+) (\S+) (\d+) (renewed|fixed) (\d+) (\S+)$/;

/**
 * Reads a text. Throws `TypeError` for what `detach` did not return, or not for locks of this `format` whose names begin
 * with `prefix`. A text that is no passport is not shown: it may be a secret.
 */
export function passportIn(text: unknown, format: LockFormat, prefix: string): Passport {
  const unlike = (what: string, got: string) =>
    new TypeError(inOneLine(`Expected \`passport\` to be ${what}, got ${got}`));
  if (typeof text !== 'string') throw new TypeError(expected('passport', 'a text that detach() returned', text));
  const [, version] = /^lease\/(\d{1,9}) /.exec(text) ?? [];
  if (version !== undefined && version !== VERSION) throw unlike(`of version ${VERSION}`, `version ${version}`);
  const passport = parsed(text);
  if (passport === undefined) throw unlike('a text that detach() returned', `another of ${text.length} characters`);
  const { lock } = passport;
  if (passport.format !== format) {
    throw unlike(`of ${describeFormat(format)}`, `that of ${describeFormat(passport.format)}, ${inspect(lock)}`);
  }
  if (lock.startsWith(prefix) && lock !== prefix) return passport;
  throw unlike(`of a lock whose name in Redis begins with ${inspect(prefix)}`, `that of ${inspect(lock)}`);
}

/** `undefined`: it is no passport, or not whole. */
function parsed(text: string): Passport | undefined {
  const [, kind, owner = '', ttl, renewal, minHold, lock = ''] = TEXT.exec(text) ?? [];
  const format = LOCK_FORMATS.find((one) => one === kind);
  const numbers = { ttl: Number(ttl), minHold: Number(minHold) };
  if (format === undefined || !(numbers.ttl >= MIN_TTL && numbers.ttl <= MAX_DELAY)) return undefined;
  try {
    const names = { owner: decodeURI(owner), lock: decodeURI(lock) };
    if (!isDetached(names.owner) || !isOwner(names.owner)) return undefined;
    return { format, ...names, ...numbers, renew: renewal === 'renewed' };
  } catch {
    return undefined;
  }
}

/** Throws `TypeError` for leases of a kind that cannot be detached, or adopted. */
export function assertTravels(travel: Travel | undefined, lockType: string): Travel {
  if (travel !== undefined) return travel;
  throw doesNotTravel(`a lock of type ${lockType}`, `that of a lock of type ${listed(TRAVELLING_TYPES)} can`);
}

export function doesNotTravel(whose: string, instead: string): TypeError {
  return new TypeError(`The lease of ${whose} cannot travel to another process: ${instead}`);
}
