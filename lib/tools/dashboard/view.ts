import { clock, within } from '../../internal/clock';
import type { RedisClient } from '../../redis/client';
import { messageOf } from '../../redis/failure';
import { lockPrefix } from '../../redis/names';
import { SHOWN_AFTER } from '../../redis/silence-times';
import { type Found, finderOf } from '../inspection/find-locks';
import { firstOwnerOf, longestHold, ownerOf, withTimes } from '../inspection/found-lock';
import { History, LONGEST_GAP, type SeenLock } from '../inspection/history';
import { serversOf } from '../inspection/servers';
import { type Activity, SHOWN_CHANGES } from './activity';

/** ms; all that look at the page share one look at Redis in this time. */
const LEAST_AGE = 1_000;
/** A look at many locks takes long: at most a third of the time is spent with looking. */
const TIMES_LONGER = 2;
/** ms; how long the page waits for a new look. */
const LONGEST_WAIT = 500;
/** How many locks the page gets at a time. */
const SIZE = 100;
/** ms; a lock is overdue when somebody has waited for longer. */
const LONG_WAIT = 30_000;
/** A lock is overdue when it is held for longer than this many times what is usual for it. */
const TIMES_USUAL = 10;
/** ms; a shorter time makes no lock overdue or urgent, whatever is usual. */
const SHORT = 10_000;

type ShownLock = SeenLock & {
  readonly isHere: boolean;
  /** ms; the longest wait that is known. `isLeast`: only since when there are waiters is known. */
  readonly longestWait: number | null;
  readonly isLeast: boolean;
  /** ms for which it is held usually, as far as that was seen. */
  readonly usual: number | null;
  /** The lock is held for much longer than that. */
  readonly isLong: boolean;
  readonly isOverdue: boolean;
};

const ORDERS: Readonly<Record<string, (lock: ShownLock) => string | number>> = {
  lock: ({ lock }) => lock,
  kind: ({ kind, type, format }) => `${kind} ${type ?? format}`,
  holder: ({ holder }) => holder ?? '',
  heldFor: ({ heldFor }) => heldFor ?? -1,
  remaining: ({ remaining }) => remaining ?? Number.POSITIVE_INFINITY,
  waiting: ({ waiting }) => waiting ?? -1,
};

/**
 * Waiters times age, the most urgent first. Whether anybody waits for a `spin` lock is not known: it counts as one. What
 * may be data of an application comes last.
 */
function urgency({ heldFor, isKept, isOverdue, isSure, longestWait, waiting }: ShownLock): number {
  if (isOverdue || !isSure) return isOverdue ? Number.NEGATIVE_INFINITY : 1;
  const age = Math.max(heldFor ?? 0, longestWait ?? 0);
  return age < SHORT || isKept ? 0 : -age * (waiting ?? 1);
}

/** One of the connections that listen may be the holder's. */
function surelyWaiting({ isWaitingExact, waiting }: SeenLock): number {
  return isWaitingExact ? (waiting ?? 0) : Math.max(0, (waiting ?? 0) - 1);
}

/** What the page shows. It looks at Redis only when somebody asks. */
export function viewOf(client: RedisClient, registryKey: string | undefined, activity: Activity, actions: boolean) {
  const find = finderOf(client, { registryKey });
  const history = new History();
  /** Since when the waiters of a hold are seen: by `holdOf`. */
  let waitersSeen = new Map<string, number>();
  let locks: readonly ShownLock[] = [];
  /** `at`, on the wall clock, and `seenAt`, on the monotonic one: when the look was answered. */
  let last: (Found & { readonly at: number; readonly seenAt: number }) | undefined;
  let server: Awaited<ReturnType<typeof describeServer>> | undefined;
  let problem: string | null = null;
  let freshUntil = 0;
  let startedAt = 0;
  let isExpired = false;
  let looking: Promise<void> | undefined;

  /** Looks, and once more if `expire` was called meanwhile. */
  const lookAnew = async (): Promise<void> => {
    do {
      isExpired = false;
      await look();
    } while (isExpired);
  };

  const look = async (): Promise<void> => {
    startedAt = clock.now();
    // After a silence another server may have the address.
    const known = problem === null ? server : undefined;
    const [found, described] = await Promise.all([find(), known ?? describeServer(client)]);
    const now = clock.now();
    const isWhole = found.missing.length === 0;
    // A server that was silent may be back: the next look may take less.
    freshUntil = now + Math.max(LEAST_AGE, isWhole ? TIMES_LONGER * (now - startedAt) : 0);
    problem = found.searched.length > 0 ? null : found.missing.join('; ');
    if (problem !== null) return;
    server = described;
    const isGap = last !== undefined && now - last.seenAt > LONGEST_GAP;
    last = { ...found, at: Date.now(), seenAt: now };
    // In a part of the locks, the others would look free.
    if (isWhole) {
      for (const { at, holder, lock, owner, what } of history.update(found.locks, now, startedAt)) {
        // This process says itself what it does.
        const reason = isGap ? 'while nobody looked' : undefined;
        if (!activity.isOfProcess(owner)) activity.note(what, lock, holder, reason, at.getTime());
      }
      // How long a hold took that has ended meanwhile was not seen.
      if (!isGap) noteEnded(found);
    }
    const shown: readonly SeenLock[] = isWhole ? history.seen(now) : found.locks;
    const waits = activity.waits(now);
    const seen = new Map<string, number>();
    locks = shown.map((lock) => {
      const { holder, owner, queue } = lock;
      const here = activity.held.get(owner ?? '');
      const holders = lock.holders.map((one) => {
        const at = activity.held.get(ownerOf(one))?.at;
        return at === undefined ? one : withTimes(one, { heldFor: Math.round(now - at), isOlder: false });
      });
      const { heldFor, isOlder = false } = longestHold({ holders });
      const renewed = here?.renewed ?? lock.renewed;
      const hold = holdOf(lock.lock, firstOwnerOf(lock));
      if (surelyWaiting(lock) > 0) seen.set(hold, waitersSeen.get(hold) ?? now);
      const waitTimes = [waits.get(lock.lock)?.waits ?? 0, ...(queue ?? []).map((one) => one.waitingFor ?? 0)];
      const isLeast = waitTimes.every((time) => time === 0);
      const longestWait = Math.round(isLeast ? now - (seen.get(hold) ?? now) : Math.max(...waitTimes)) || null;
      const usual = holder === null || lock.isKept ? null : activity.holdTimes.usual(lock.lock);
      const isLong = usual !== null && (heldFor ?? 0) > Math.max(SHORT, TIMES_USUAL * usual);
      const isOverdue = isLong || (longestWait ?? 0) > LONG_WAIT;
      const times = { heldFor, isOlder, longestWait, isLeast, usual, isLong, isOverdue };
      return { ...lock, holders, renewed, isHere: here !== undefined, ...times };
    });
    waitersSeen = seen;
  };

  /** How long the holds took that have ended since the last look. Of those of this process, `activity` knows more. */
  const noteEnded = (found: Found): void => {
    const holds = found.locks.flatMap(({ holders, lock }) => holders.map((one) => holdOf(lock, ownerOf(one))));
    const open = new Set(holds);
    for (const { holders, lock } of locks) {
      for (const one of holders) {
        const { heldFor, isKept, isOlder = false, owner } = one;
        if (heldFor === null || isKept || isOlder || activity.isOfProcess(owner)) continue;
        if (open.has(holdOf(lock, ownerOf(one)))) continue;
        activity.holdTimes.add(lock, heldFor);
      }
    }
  };

  const read = async (query: URLSearchParams): Promise<object> => {
    if (isExpired || clock.now() >= freshUntil) {
      looking ??= lookAnew()
        .catch((error: unknown) => {
          problem = messageOf(error);
        })
        .finally(() => {
          looking = undefined;
        });
    }
    // The last look does, while a new one takes long.
    if (looking !== undefined) await (last === undefined ? looking : within(LONGEST_WAIT, looking));
    const seconds = Math.round((clock.now() - startedAt) / 1_000);
    const silence = looking !== undefined && seconds * 1_000 >= SHOWN_AFTER ? `no answer for ${seconds} s` : null;
    const text = query.get('q')?.toLowerCase() ?? '';
    const found = locks.filter(({ holders, lock }) => {
      return [lock, ...holders.map(({ holder }) => holder)].some((one) => one.toLowerCase().includes(text));
    });
    const sort = query.get('sort') ?? '';
    const orderOf = (Object.hasOwn(ORDERS, sort) && ORDERS[sort]) || urgency;
    const sign = query.get('descending') === 'true' ? -1 : 1;
    found.sort((a, b) => compared(orderOf(a), orderOf(b)) * sign || compared(a.lock, b.lock));
    const from = Math.max(0, Math.min(Number.parseInt(query.get('from') ?? '', 10) || 0, found.length - 1));
    const open = query.get('lock') ?? '';
    const selected = locks.find(({ lock }) => lock === open);
    const kept = locks.filter((lock) => lock.isKept).length;
    const { at = Date.now(), seenAt = clock.now(), missing = [], searched = [] } = last ?? {};
    const waits = activity.waits();
    const changes = [...activity.changes.values()].filter(({ lock }) => open === '' || lock === open);
    return {
      ...{ at, age: clock.now() - seenAt, problem: problem ?? silence, isAnswered: last !== undefined, ...server },
      // The address may name a lock of another registry.
      isLookedFor: open.startsWith(lockPrefix(registryKey ?? '')),
      ...{ missing, searched, actions, matched: found.length, from, size: SIZE },
      rows: found.slice(from, from + SIZE).map((lock) => ({ ...lock, queue: null })),
      selected: selected ? { ...selected, waitingHere: waits.get(selected.lock)?.callers ?? 0 } : null,
      counts: {
        held: locks.filter(({ holder }) => holder !== null).length - kept,
        // Of the callers of this process one at most shows in Redis.
        waiting: locks.reduce(
          (sum, lock) => sum + Math.max(surelyWaiting(lock), waits.get(lock.lock)?.callers ?? 0),
          0,
        ),
        overdue: locks.filter(({ isOverdue }) => isOverdue).length,
        kept,
      },
      changes: changes.sort((a, b) => b.at - a.at).slice(0, SHOWN_CHANGES),
      // Only an application calls locks.
      here: activity.wasCalled ? activity.busiest() : null,
    };
  };

  /** The next one that asks gets a look that begins after this. */
  const expire = (): void => {
    isExpired = true;
  };
  return { read, expire };
}

/** One hold of one lock: a process of Java has the same owner value for several locks. */
function holdOf(lock: string, owner = ''): string {
  return JSON.stringify([lock, owner]);
}

function compared(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What a server says of itself; '' and `null` where the user may not ask, or there is no database to choose. */
async function describeServer(client: RedisClient) {
  const { asked, close, isCluster } = await serversOf(client, SHOWN_AFTER);
  const ask = async (...command: string[]) => String((await asked[0]?.send(...command).catch(() => '')) ?? '');
  const asks = Promise.all([ask('INFO', 'server'), isCluster ? '' : ask('CLIENT', 'INFO')]);
  const [info, own] = await asks.finally(close);
  const versions = ['valkey', 'dragonfly', 'kvrocks', 'garnet', 'redis'].map((name) => {
    const version = new RegExp(`^${name}_version:(.+)$`, 'm').exec(info)?.[1];
    return version && `${name[0]?.toUpperCase()}${name.slice(1)} ${version}`;
  });
  const database = /\bdb=(\d+)/.exec(own)?.[1];
  return { server: versions.find(Boolean) ?? '', database: database === undefined ? null : Number(database) };
}
