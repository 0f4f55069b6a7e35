import { type Found, findLocks } from '../inspection/find-locks';
import { History, type SeenLock } from '../inspection/history';
import { clock, within } from '../internal/clock';
import type { RedisClient } from '../redis/client';
import { messageOf } from '../redis/failure';
import { type Activity, CHANGES, type ShownChange } from './activity';

/** ms; all that look at the page share one look at Redis in this time. */
const LEAST_AGE = 1_000;
/** A look at many locks takes long: at most a third of the time is spent with looking. */
const TIMES_LONGER = 2;
/** ms; how long the page waits for a new look. */
const LONGEST_WAIT = 500;
/** ms; a look that takes longer is a problem. */
const SILENT = 4_000;
/** How many locks the page gets at a time. */
const SIZE = 100;

type ShownLock = SeenLock & { readonly isHere: boolean };

const ORDERS: Readonly<Record<string, (lock: ShownLock) => string | number>> = {
  lock: ({ lock }) => lock,
  kind: ({ kind, type, format }) => `${kind} ${type ?? format}`,
  holder: ({ holder }) => holder ?? '',
  heldFor: ({ heldFor }) => heldFor ?? -1,
  remaining: ({ remaining }) => remaining ?? Number.POSITIVE_INFINITY,
  renewed: ({ renewed }) => String(renewed),
  waiting: ({ waiting }) => waiting ?? -1,
};

/** What the page shows. It looks at Redis only when somebody asks. */
export function viewOf(client: RedisClient, registryKey: string | undefined, activity: Activity, actions: boolean) {
  const history = new History();
  const seen: ShownChange[] = [];
  let locks: readonly ShownLock[] = [];
  let last: (Found & { readonly at: number }) | undefined;
  let problem: string | null = null;
  let freshUntil = 0;
  let startedAt = 0;
  let looking: Promise<void> | undefined;

  const look = async (): Promise<void> => {
    startedAt = clock.now();
    const found = await findLocks(client, { registryKey });
    const now = clock.now();
    const isWhole = found.missing.length === 0;
    // A server that was silent may be back: the next look may take less.
    freshUntil = now + Math.max(LEAST_AGE, isWhole ? TIMES_LONGER * (now - startedAt) : 0);
    problem = found.searched.length > 0 ? null : found.missing.join('; ');
    if (problem !== null) return;
    last = { ...found, at: Date.now() };
    // In a part of the locks, the others would look free.
    if (isWhole) {
      for (const { at, holder, lock, what } of history.update(found.locks, now, startedAt)) {
        // This process says itself what it does.
        if (!activity.names.has(holder)) seen.push({ at: at.getTime(), by: holder, lock, what });
      }
      seen.splice(0, Math.max(0, seen.length - CHANGES));
    }
    const shown: readonly SeenLock[] = isWhole ? history.seen(now) : found.locks;
    locks = shown.map((lock) => {
      const here = activity.held.get(lock.owner ?? '');
      if (here === undefined) return { ...lock, isHere: false };
      return { ...lock, heldFor: Math.round(now - here.at), renewed: here.renewed, isOlder: false, isHere: true };
    });
  };

  const read = async (query: URLSearchParams): Promise<object> => {
    if (clock.now() >= freshUntil) {
      looking ??= look()
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
    const silence = looking !== undefined && seconds * 1_000 >= SILENT ? `no answer for ${seconds} s` : null;
    const text = query.get('q')?.toLowerCase() ?? '';
    const found = locks.filter(({ holders, lock }) => {
      return [lock, ...holders.map(({ holder }) => holder)].some((one) => one.toLowerCase().includes(text));
    });
    const sort = query.get('sort') ?? '';
    const orderOf = (Object.hasOwn(ORDERS, sort) && ORDERS[sort]) || (({ lock }: ShownLock) => lock);
    const sign = query.get('descending') === 'true' ? -1 : 1;
    found.sort((a, b) => compared(orderOf(a), orderOf(b)) * sign || compared(a.lock, b.lock));
    const from = Math.min(Number.parseInt(query.get('from') ?? '', 10) || 0, Math.max(0, found.length - 1));
    const selected = locks.find(({ lock }) => lock === query.get('lock'));
    const kept = locks.filter((lock) => lock.isKept).length;
    const { at = Date.now(), missing = [], searched = [] } = last ?? {};
    return {
      ...{ at, age: Date.now() - at, problem: problem ?? silence, isAnswered: last !== undefined },
      ...{ missing, searched, actions, matched: found.length, from, size: SIZE },
      rows: found.slice(from, from + SIZE).map((lock) => ({ ...lock, queue: null })),
      selected: selected ? { ...selected, waitingHere: activity.waitingFor(selected.lock) } : null,
      counts: {
        held: locks.filter(({ holder }) => holder !== null).length - kept,
        kept,
        waiting: locks.reduce((sum, { waiting }) => sum + (waiting ?? 0), 0),
      },
      changes: [...activity.changes, ...seen].sort((a, b) => b.at - a.at).slice(0, CHANGES),
      hot: activity.hottest(),
      waits: activity.longestWaits(),
    };
  };

  /** The next one that asks gets a new look. */
  const expire = (): void => {
    freshUntil = 0;
  };
  return { read, expire };
}

function compared(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
