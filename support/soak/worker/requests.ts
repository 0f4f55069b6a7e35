import type { LockOptions } from '../../../lib';
import type { Random } from '../../random';
import { GRACES, KEYS, LONG_TTL, LONGEST_HOLD, LONGEST_MIN_HOLD, LONGEST_WAIT, registryOptions } from '../settings';

/** One call of a caller, and what it does with its lease. */
export interface Request {
  readonly key: string;
  /** Keys that are taken together with it, in no order. */
  readonly others: readonly string[];
  readonly method: 'lock' | 'tryLock' | 'run';
  readonly options: LockOptions;
  /** ms after which the caller aborts. */
  readonly abortAfter: number | undefined;
  /** ms */
  readonly hold: number;
  readonly renews: boolean;
  /** Whether all unused locks are evicted while the call waits, and before its lease ends. */
  readonly evicts: boolean;
  /** Its task ends when its signal aborts, or its lease is asked for. */
  readonly stops: boolean;
  /** Whether it asks the holder to end early before it begins. */
  readonly asks: boolean;
  /** ms in which the call must be settled: P1, with the grace of P14. */
  readonly bound: number;
}

/** `several`: how often a call takes several keys. `mayReplace`: the others may replace. */
export function randomRequest(random: Random, several: number, mayReplace: boolean): Request {
  const method = random.pick(['lock', 'lock', 'tryLock', 'run'] as const);
  const abortAfter = random.chance(0.25) ? random.whole(0, 800) : undefined;
  const waitTime = randomWait(random, method, abortAfter !== undefined);
  const key = random.pick(KEYS);
  const others = random.chance(several) ? KEYS.filter((other) => other !== key && random.chance(0.5)) : [];
  const grace = mayReplace && others.length === 0 ? randomGrace(random) : undefined;
  // One that is lost in its grace would let the next one in.
  const ttl = grace === undefined ? randomTtl(random) : { ttl: LONG_TTL };
  return {
    key,
    others,
    method,
    options: {
      ...ttl,
      ...randomMinHold(random, ttl),
      ...(waitTime === undefined ? {} : { waitTime }),
      ...(grace === undefined ? {} : { replace: true, grace }),
    },
    abortAfter,
    hold: random.chance(0.06) ? random.whole(150, LONGEST_HOLD) : random.whole(0, 40),
    renews: random.chance(0.1),
    evicts: random.chance(0.15),
    stops: random.chance(0.6),
    asks: mayReplace && random.chance(0.1),
    // A waitTime of 0, the default of tryLock, is one attempt with the time that a command has.
    bound: (waitTime || registryOptions.commandTimeout) + (grace ?? 0),
  };
}

/** Leases that end under their holder, leases that the watchdog keeps alive, and leases whose leak would show. */
function randomTtl(random: Random): LockOptions {
  const kind = random.whole(0, 9);
  if (kind < 3) return { ttl: random.whole(80, 500) };
  if (kind < 6) return { ttl: random.whole(600, 1_500), renew: true };
  return kind < 8 ? { ttl: LONG_TTL } : {};
}

/** Seldom: of calls that come faster than a task ends none begins. */
function randomGrace(random: Random): number | undefined {
  if (!random.chance(0.2)) return undefined;
  return random.chance(0.15) ? GRACES.short : GRACES.long;
}

/** Seldom: it makes all others wait. */
function randomMinHold(random: Random, { ttl = LONG_TTL }: LockOptions): LockOptions {
  const longest = Math.min(ttl, LONGEST_MIN_HOLD);
  return random.chance(0.1) ? { minHold: random.chance(0.3) ? longest : random.whole(20, longest) } : {};
}

/** `undefined` is one attempt of `tryLock`. */
function randomWait(random: Random, method: Request['method'], aborts: boolean): number | undefined {
  if (method === 'tryLock' && random.chance(0.6)) return undefined;
  if (aborts && random.chance(0.5)) return Number.POSITIVE_INFINITY;
  return random.chance(0.2) ? random.whole(0, 50) : random.whole(50, LONGEST_WAIT);
}
