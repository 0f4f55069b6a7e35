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
