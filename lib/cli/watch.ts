import { setTimeout as sleep } from 'node:timers/promises';
import { type Arguments, assertNoKey, delayOf } from './arguments';
import { complain, EXIT, jsonOf, print, printable } from './output';
import { look, tableOf, using } from './show';
import type { FoundLock } from './survey';

/** One change that `watch` saw. */
export interface Change {
  readonly at: Date;
  readonly lock: string;
  /** `kept`: unlocked, and taken until its minimum hold ends. `entered`, `left`: of a shared lock with other holders. */
  readonly what: 'taken' | 'passed on' | 'kept' | 'entered' | 'left' | 'free';
  /** Who has it now, has entered or left it, or had it. */
  readonly holder: string;
}

interface Known {
  readonly lock: FoundLock;
  /** On the monotonic clock: when it was seen first, and last. */
  readonly since: number;
  readonly seenAt: number;
  /** It was held when the watch began: since when is not known. */
  readonly isOlder: boolean;
}

/** ms by which a renewal changes the remaining time at least: two looks at one lease take some time. */
const RENEWED_BY = 200;

/** What changed between two lists of the held locks. */
export class History {
  #known: Map<string, Known> | undefined;

  /** Takes over a list; the changes since the last one. */
  update(locks: readonly FoundLock[], now: number): Change[] {
    const before = this.#known;
    const at = new Date();
    const changes: Change[] = [];
    const known = new Map<string, Known>();
    for (const found of locks) {
      const last = before?.get(found.lock);
      const news = changesOf(found, last?.lock);
      const isNew = last === undefined || news.some(([what]) => what === 'passed on');
      const isLonger = !isNew && found.remaining > last.lock.remaining - (now - last.seenAt) + RENEWED_BY;
      const renewed = isNew ? null : (isLonger && found.owner === last.lock.owner) || last.lock.renewed;
      const lock = { ...found, renewed };
      known.set(
        lock.lock,
        isNew ? { lock, since: now, seenAt: now, isOlder: before === undefined } : { ...last, lock, seenAt: now },
      );
      if (before !== undefined) changes.push(...news.map(([what, holder]) => ({ at, lock: lock.lock, what, holder })));
    }
    for (const [name, { lock }] of before ?? []) {
      if (!known.has(name)) changes.push({ at, lock: name, what: 'free', holder: lock.holder });
    }
    this.#known = known;
    return changes;
  }

  /** The locks of the last list, with what the earlier ones tell. `isOlder`: it is held for that long at least. */
  seen(now: number): { readonly lock: FoundLock; readonly isOlder: boolean }[] {
    return [...(this.#known?.values() ?? [])].map(({ lock, since, isOlder }) => {
      return { lock: { ...lock, heldFor: lock.heldFor ?? now - since }, isOlder: isOlder && lock.heldFor === null };
    });
  }
}

function changesOf(lock: FoundLock, last: FoundLock | undefined): [what: Change['what'], holder: string][] {
  if (last === undefined) return [['taken', lock.holder]];
  if (lock.format === 'shared' && last.format === 'shared') {
    const missingIn = (other: FoundLock) => (one: { owner: string }) =>
      !other.holders.some(({ owner }) => owner === one.owner);
    const entered = lock.holders
      .filter(missingIn(last))
      .map(({ holder }) => ['entered', holder] as ['entered', string]);
    return [
      ...entered,
      ...last.holders.filter(missingIn(lock)).map(({ holder }) => ['left', holder] as ['left', string]),
    ];
  }
  if (lock.owner === last.owner) return [];
  return [[lock.isKept && lock.owner.endsWith(last.owner) ? 'kept' : 'passed on', lock.holder]];
}

/** Lines of history below the table, and what `watch` clears the terminal with. */
const LINES = 8;
const CLEAR = '\u001b[H\u001b[2J';

/** `redis-locks watch`: until SIGINT or SIGTERM. */
export async function watch(args: Arguments): Promise<number> {
  assertNoKey(args);
  const { values } = args;
  const interval = Math.max(10, delayOf(values, 'interval', 1_000));
  const stop = new AbortController();
  const end = (): void => stop.abort();
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  // The reader has gone away: see main.ts.
  process.stdout.on('error', end);
  const isLive = process.stdout.isTTY && !values.json;
  const history = new History();
  const lines: string[] = [];
  return using(values, async (servers) => {
    while (!stop.signal.aborted) {
      const { locks, missing } = await look(servers, values);
      // In a part of the locks, the others would look free.
      const changes = missing.length > 0 ? [] : history.update(locks, performance.now());
      lines.unshift(...changes.map(lineOf).reverse());
      lines.splice(LINES);
      if (isLive) process.stdout.write(CLEAR + screenOf(history, lines, missing).join('\n'));
      else for (const reason of missing) complain(reason);
      if (!isLive) for (const change of changes) print(values.json ? jsonOf(change) : lineOf(change));
      // It rejects when the watch is ended.
      await sleep(interval, undefined, { signal: stop.signal }).catch(() => undefined);
    }
    return EXIT.ok;
  });
}

/** As many lines as the terminal has: the head of the table stays. */
function screenOf(history: History, lines: readonly string[], missing: readonly string[]): string[] {
  const seen = history.seen(performance.now());
  const [head = '', ...rows] = tableOf(
    seen.map(({ lock }) => lock),
    seen.map(({ isOlder }) => isOlder),
  );
  // A terminal without a size says 0.
  const { columns: width, rows: height } = { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  const rest = ['', ...missing, ...lines].map((line) => printable(line).slice(0, width));
  const room = Math.max(1, height - 2 - rest.length);
  const isCut = rows.length > room;
  if (seen.length === 0) rows.push('No lock is held.');
  return [head, ...(isCut ? [...rows.slice(0, room), `and ${rows.length - room} more`] : rows), ...rest];
}

function lineOf({ at, lock, what, holder }: Change): string {
  const described = {
    taken: `taken by ${holder}`,
    'passed on': `passed on to ${holder}`,
    kept: `unlocked by ${holder}, and kept until its minimum hold ends`,
    entered: `${holder} has entered`,
    left: `${holder} has left`,
    free: `free (was held by ${holder})`,
  };
  return printable(`${at.toTimeString().slice(0, 8)} ${lock}: ${described[what]}`);
}
