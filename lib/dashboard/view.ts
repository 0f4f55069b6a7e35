import { type Found, findLocks } from '../inspection/find-locks';
import type { FoundLock } from '../inspection/found-lock';
import { History } from '../inspection/history';
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

interface ShownLock extends FoundLock {
  /** It was held for that long at least. */
  readonly isOlder: boolean;
  readonly isHere: boolean;
}

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
export class View {
  readonly #client: RedisClient;
  readonly #registryKey: string | undefined;
  readonly #activity: Activity;
  readonly #actions: boolean;
  readonly #history = new History();
  readonly #seen: ShownChange[] = [];
  #locks: readonly ShownLock[] = [];
  #last: (Found & { readonly at: number }) | undefined;
  #problem: string | null = null;
  #freshUntil = 0;
  #startedAt = 0;
  #looking: Promise<void> | undefined;

  constructor(client: RedisClient, registryKey: string | undefined, activity: Activity, actions: boolean) {
    this.#client = client;
    this.#registryKey = registryKey;
    this.#activity = activity;
    this.#actions = actions;
  }

  /** The next one that asks gets a new look. */
  expire(): void {
    this.#freshUntil = 0;
  }

  async read(query: URLSearchParams): Promise<object> {
    if (clock.now() >= this.#freshUntil) {
      this.#looking ??= this.#look()
        .catch((error: unknown) => {
          this.#problem = messageOf(error);
        })
        .finally(() => {
          this.#looking = undefined;
        });
    }
    // The last look does, while a new one takes long.
    const looking = this.#looking;
    if (looking !== undefined) await (this.#last === undefined ? looking : within(LONGEST_WAIT, looking));
    const seconds = Math.round((clock.now() - this.#startedAt) / 1_000);
    const isSilent = this.#looking !== undefined && seconds * 1_000 >= SILENT;
    const silence = isSilent ? `no answer for ${seconds} s` : null;
    const activity = this.#activity;
    const text = query.get('q')?.toLowerCase() ?? '';
    const found = this.#locks.filter(({ holders, lock }) => {
      return [lock, ...holders.map(({ holder }) => holder)].some((one) => one.toLowerCase().includes(text));
    });
    const orderOf = ORDERS[query.get('sort') ?? ''] ?? (({ lock }: ShownLock) => lock);
    const sign = query.get('descending') === 'true' ? -1 : 1;
    found.sort((a, b) => compared(orderOf(a), orderOf(b)) * sign || compared(a.lock, b.lock));
    const from = Math.min(Number.parseInt(query.get('from') ?? '', 10) || 0, Math.max(0, found.length - 1));
    const name = query.get('lock');
    const selected = this.#locks.find(({ lock }) => lock === name);
    const isKept = this.#locks.filter((lock) => lock.isKept).length;
    const { at = Date.now(), missing = [], searched = [] } = this.#last ?? {};
    return {
      ...{ at, age: Date.now() - at, problem: this.#problem ?? silence, isAnswered: this.#last !== undefined },
      ...{ missing, searched, actions: this.#actions, matched: found.length, from, size: SIZE },
      rows: found.slice(from, from + SIZE).map((lock) => ({ ...lock, queue: null })),
      selected: selected ? { ...selected, waitingHere: activity.waitingFor(selected.lock) } : null,
      counts: {
        held: this.#locks.filter(({ holder }) => holder !== null).length - isKept,
        kept: isKept,
        waiting: this.#locks.reduce((sum, { waiting }) => sum + (waiting ?? 0), 0),
      },
      changes: [...activity.changes, ...this.#seen].sort((a, b) => b.at - a.at).slice(0, CHANGES),
      hot: activity.hottest(),
      waits: activity.longestWaits(),
    };
  }

  async #look(): Promise<void> {
    this.#startedAt = clock.now();
    const found = await findLocks(this.#client, { registryKey: this.#registryKey });
    const now = clock.now();
    this.#freshUntil = now + Math.max(LEAST_AGE, TIMES_LONGER * (now - this.#startedAt));
    this.#problem = found.searched.length > 0 ? null : found.missing.join('; ');
    if (this.#problem !== null) return;
    this.#last = { ...found, at: Date.now() };
    // In a part of the locks, the others would look free.
    const isWhole = found.missing.length === 0;
    if (isWhole) {
      for (const { at, holder, lock, what } of this.#history.update(found.locks, now)) {
        // This process says itself what it does.
        if (!this.#activity.names.has(holder)) this.#seen.push({ at: at.getTime(), by: holder, lock, what });
      }
      this.#seen.splice(0, Math.max(0, this.#seen.length - CHANGES));
    }
    const seen = isWhole ? this.#history.seen(now) : found.locks.map((lock) => ({ lock, isOlder: false }));
    this.#locks = seen.map(({ isOlder, lock }) => {
      const here = this.#activity.held.get(lock.owner ?? '');
      if (here === undefined) return { ...lock, isOlder, isHere: false };
      const heldFor = Math.round(now - here.at);
      return { ...lock, heldFor, renewed: here.renewed, isOlder: false, isHere: true };
    });
  }
}

function compared(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
