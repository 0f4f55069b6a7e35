import type { ListedLock } from '../lock-state';
import { holderOf } from './output';

/** One change that `watch` saw. */
export interface Change {
  readonly at: Date;
  readonly key: string;
  readonly what: 'taken' | 'passed on' | 'free';
  /** Who has it now, or had it. */
  readonly holder: string;
}

interface Known {
  readonly owner: string | undefined;
  readonly holder: string;
  /** On the monotonic clock. */
  readonly since: number;
  /** It was held when the watch began: since when is not known. */
  readonly isOlder: boolean;
}

/** What changed between two lists of the held locks. */
export class History {
  #known: Map<string, Known> | undefined;

  /** Takes over a list; the changes since the last one. */
  update(locks: readonly ListedLock[], now: number): Change[] {
    const before = this.#known;
    const at = new Date();
    const changes: Change[] = [];
    const known = new Map<string, Known>();
    for (const lock of locks) {
      const holder = holderOf(lock);
      const last = before?.get(lock.key);
      if (last?.owner === lock.owner && last !== undefined) {
        known.set(lock.key, last);
        continue;
      }
      known.set(lock.key, { owner: lock.owner, holder, since: now, isOlder: before === undefined });
      if (before !== undefined)
        changes.push({ at, key: lock.key, what: last === undefined ? 'taken' : 'passed on', holder });
    }
    for (const [key, { holder }] of before ?? []) {
      if (!known.has(key)) changes.push({ at, key, what: 'free', holder });
    }
    this.#known = known;
    return changes;
  }

  /** ms for which the lock has been held, as far as was seen; `isOlder`: at least. */
  heldFor(key: string, now: number): { readonly ms: number; readonly isOlder: boolean } {
    const known = this.#known?.get(key);
    return known === undefined ? { ms: 0, isOlder: false } : { ms: now - known.since, isOlder: known.isOlder };
  }
}
