import { type LockFormat, type LockType, listed, type SharedKind, traitsOf, typesOf } from '../../api/lock-types';
import { acquiredAtIn, formOf, holderOf, isKept, isOfLibrary, nameIn, permitsIn } from '../../api/owner-name';
import type { Queue, Seen } from '../../kinds/common/look';

/** Stands for the value of a key that may be data of an application. Nothing of it is shown: it may be a secret. */
export const NOT_SHOWN = 'not shown';

/** One lock, as --json prints it: docs/operations.md says what each part is. `null`: not known, or there is none. */
export interface FoundLock {
  /** The lock's name in Redis, and its two parts. */
  readonly lock: string;
  readonly registryKey: string | null;
  readonly key: string | null;
  readonly kind: 'lock' | SharedKind;
  readonly format: LockFormat | 'shared';
  /** `null`: it may be any of `types`. A shared lock has none. */
  readonly type: LockType | null;
  readonly types: readonly LockType[];
  /** For people: the type as an application names it, all that it may be, or whose lock it is. '': a shared lock. */
  readonly typeName: string;
  /** `false`: it has the form of a lock and nothing else proves that it is one: it may be data of an application. */
  readonly isSure: boolean;
  /**
   * `false`: nothing but its form says that it is a lock, and the registryKey that was asked for, if `isSure`. To delete
   * it needs the word of somebody who knows.
   */
  readonly isCertain: boolean;
  /** What follows, to `heldFor`, is of the first of `holders`. `null`: nobody holds it, and somebody waits for it. */
  readonly holder: string | null;
  readonly owner: string | null;
  readonly remaining: number | null;
  readonly isKept: boolean;
  readonly acquiredAt: number | null;
  readonly heldFor: number | null;
  /** All that hold it: several of a shared lock. First the one whose lease lasts longest. */
  readonly holders: readonly Holder[];
  /** Redis does not say it: `History` sees it. */
  readonly renewed: boolean | null;
  /** The number of a semaphore, while somebody waits. */
  readonly permits: number | null;
  /** How many processes wait, or how many callers of Redisson. */
  readonly waiting: number | null;
  /** `false`: at most that number. The connections that listen were counted, and that of the holder may be one. */
  readonly isWaitingExact: boolean;
  /** `null`: the lock has no queue in Redis. */
  readonly queue: readonly Waiter[] | null;
  readonly fencingToken: number | null;
}

export interface Holder {
  /** The name in the owner value, or else all of it; NOT_SHOWN, as `owner`: it may be data of an application. */
  readonly holder: string;
  readonly owner: string;
  /** ms until it expires unless it is renewed; `null`: never. */
  readonly remaining: number | null;
  /** The lock was unlocked, and stays taken until its `minHold` ends. */
  readonly isKept: boolean;
  readonly permits: number;
  /**
   * ms since 1970 by the clock of its process, and ms since then. `null`: the owner value does not say it; the second one
   * also where that clock is ahead of the server's.
   */
  readonly acquiredAt: number | null;
  readonly heldFor: number | null;
  /** The lock has been held for longer than `History` saw: `heldFor` is what it saw. */
  readonly isOlder?: boolean;
}

interface Waiter {
  /** From 1. */
  readonly position: number;
  readonly waiter: string;
  readonly owner: string;
  /** What a waiter of a shared lock waits for. */
  readonly kind: 'lock' | SharedKind;
  /** ms; of `redisson-fair` not known. */
  readonly waitingFor: number | null;
}

/** A key of another program that has the name of a lock: while it is there, nobody gets the lock. */
export interface Obstacle {
  readonly name: string;
  /** As TYPE answers. */
  readonly type: string;
  /** ms until it expires; `null`: never. */
  readonly remaining: number | null;
  /** It is a lock, of another type than the one that was looked for. */
  readonly isLock: boolean;
  /** Of a string of another program: its form, in words. */
  readonly form?: string | undefined;
}

/** The values that are not shown. */
const values = new WeakMap<Holder, string>();

/** The owner value, also where it is not shown: to compare it with others. */
export function ownerOf(holder: Holder): string {
  return values.get(holder) ?? holder.owner;
}

/** The holder with other times. */
export function withTimes(holder: Holder, times: Pick<Holder, 'heldFor' | 'isOlder'>): Holder {
  const copy = { ...holder, ...times };
  values.set(copy, ownerOf(holder));
  return copy;
}

/** The owner value of the first holder; `undefined`: nobody holds it. */
export function firstOwnerOf({ holders: [first] }: FoundLock): string | undefined {
  return first && ownerOf(first);
}

/** For how long the lock has been held, as far as that is known: of a shared lock, it may not be the first holder's time. */
export function longestHold({ holders }: Pick<FoundLock, 'holders'>): Pick<Holder, 'heldFor' | 'isOlder'> {
  const none: Pick<Holder, 'heldFor' | 'isOlder'> = { heldFor: null, isOlder: false };
  return holders.reduce((longest, one) => ((one.heldFor ?? -1) > (longest.heldFor ?? -1) ? one : longest), none);
}

/** The owner value says when the lock was acquired, by a clock that is ahead of the server's: for how long is not known. */
export function isClockAhead({ acquiredAt, heldFor }: Pick<Holder, 'acquiredAt' | 'heldFor'>): boolean {
  return acquiredAt !== null && heldFor === null;
}

/** Whether somebody else has what was looked at twice. A shared lock may have other holders then, and still the first ones. */
export function hasOtherOwner(one: FoundLock, other: FoundLock): boolean {
  return one.format !== 'shared' && firstOwnerOf(one) !== firstOwnerOf(other);
}

/** Whether a lock may be of this type; `undefined`: of any. Shared locks have no type, and are of all. */
export function mayBeOf({ format, types }: FoundLock, type: LockType | undefined): boolean {
  return type === undefined || format === 'shared' || types.includes(type);
}

/** What is shown of a lock; `undefined`: nobody holds it, or waits for it in a queue. */
export function foundLock(
  lock: string,
  format: FoundLock['format'],
  registryKey: string | undefined,
  { owners, listeners, queue = [], isSure = true, isCertain = isSure, others, ...known }: Seen,
  now: number,
): FoundLock | undefined {
  if (owners.some(({ remaining }) => remaining === null || remaining === -2)) return undefined;
  const holders = owners.map(({ owner, remaining: left }) => {
    const remaining = left === -1 ? null : left;
    const acquiredAt = acquiredAtIn(owner) ?? null;
    const times = { remaining, acquiredAt, heldFor: elapsed(acquiredAt, now) };
    if (!isSure) {
      const hidden: Holder = { holder: NOT_SHOWN, owner: NOT_SHOWN, isKept: false, permits: 1, ...times };
      values.set(hidden, owner);
      return hidden;
    }
    return { holder: nameOf(owner), owner, isKept: isKept(owner), permits: permitsIn(owner), ...times };
  });
  const [first] = holders;
  if (first === undefined && queue.length === 0) return undefined;
  const types = known.type ? [known.type] : typesOf(format);
  const owner = owners[0]?.owner;
  const typeName = owner === undefined || isOfLibrary(owner) ? listed(types) : (others ?? othersType(owner));
  const prefix = registryKey ?? onlyRegistryKeyIn(lock, format) ?? null;
  return {
    lock,
    registryKey: prefix,
    key: prefix === null ? null : lock.slice(prefix === '' ? 0 : prefix.length + 1),
    ...{
      kind: 'lock',
      format,
      type: null,
      types,
      typeName,
      isSure,
      isCertain,
      isWaitingExact: listeners === undefined,
    },
    ...{ holder: first?.holder ?? null, owner: first?.owner ?? null, remaining: first ? first.remaining : 0 },
    ...{ isKept: first?.isKept ?? false, acquiredAt: first?.acquiredAt ?? null, heldFor: first?.heldFor ?? null },
    ...{ holders, renewed: null },
    ...{ permits: null, waiting: listeners === undefined ? queue.length : listeners, fencingToken: null, ...known },
    queue: queue.length === 0 ? null : queue.map((waiter, i) => waiterOf(waiter, i + 1, now)),
  };
}

function waiterOf({ owner, kind, since }: Queue[number], position: number, now: number): Waiter {
  return { position, waiter: nameOf(owner), owner, kind: kind ?? 'lock', waitingFor: elapsed(since, now) };
}

function nameOf(owner: string): string {
  return nameIn(owner) ?? holderOf(owner);
}

/** ms by which the clocks of a process and of the server may differ in what is shown. */
const CLOCKS_DIFFER = 1_000;

/** `null`: it is not known, or later than now: then the clock that it was read from is ahead. */
function elapsed(since: number | null | undefined, now: number): number | null {
  if (since === null || since === undefined || since - now > CLOCKS_DIFFER) return null;
  return Math.max(0, Math.round(now - since));
}

/**
 * With one colon, and something before it and behind it, there is one way to split the name of a lock of ours; without a
 * colon it has no registryKey. (One with a colon may have none either: its key is the whole name then.)
 */
function onlyRegistryKeyIn(lock: string, format: FoundLock['format']): string | undefined {
  const hasRegistryKey = typesOf(format).some((type) => traitsOf(type).needsRegistryKey);
  const parts = hasRegistryKey ? /^(?:([^:]+):)?[^:]+$/.exec(lock) : null;
  return parts === null ? undefined : (parts[1] ?? '');
}

/** What is known of a lock whose owner value is not of this library, but has a form that several others have. */
function othersType(owner: string): string {
  const form = formOf(owner);
  return form === undefined ? 'others' : `others (${form.name})`;
}
