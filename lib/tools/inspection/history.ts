import { holderOf, isDetached } from '../../api/owner-name';
import { type FoundLock, firstOwnerOf, type Holder, ownerOf, withTimes } from './found-lock';

/** One change between two lists of locks. */
export interface Change {
  readonly at: Date;
  readonly lock: string;
  /** `kept`: unlocked, and taken until its minimum hold ends. `entered`, `left`: of a shared lock with other holders. */
  readonly what: 'taken' | 'passed on' | 'kept' | 'detached' | 'entered' | 'left' | 'free';
  /** Who has it now, has entered or left it, or had it; and the owner value, as `Holder` shows it. */
  readonly holder: string;
  readonly owner: string;
}

interface Known {
  readonly lock: FoundLock;
  /** On the monotonic clock: when it was seen last. */
  readonly seenAt: number;
  readonly holders: ReadonlyMap<string, Seen>;
}

/**
 * Since when an owner value was seen, on the monotonic clock. `isOlder`: it may have been there before, since nobody had
 * looked for a while.
 */
interface Seen {
  readonly since: number;
  readonly isOlder: boolean;
}

type News = [what: Change['what'], by: Pick<Holder, 'holder' | 'owner'>];

/** `isOlder`: as of the first holder. */
export type SeenLock = FoundLock & Pick<Holder, 'isOlder'>;

/** ms by which a renewal changes the remaining time at least. */
const RENEWED_BY = 200;

/**
 * ms; what is seen first after a longer time without a look may have been there for all of it. The page looks every two
 * seconds, and less often while a look takes long.
 */
export const LONGEST_GAP = 6_000;

/** With these begins a time that is not that of the holder before. */
const NEW: readonly Change['what'][] = ['taken', 'passed on', 'detached', 'free'];

/** What changed between two lists of the held locks. */
export class History {
  #known: Map<string, Known> | undefined;
  #updatedAt = 0;

  /**
   * Takes over a list; the changes since the last one. `askedAt`: when the look began. The remaining times were read
   * after that, and those of the last list before its end: at least so much time is between them.
   */
  update(locks: readonly FoundLock[], now: number, askedAt = now): Change[] {
    const before = this.#known;
    const at = new Date();
    const changes: Change[] = [];
    const known = new Map<string, Known>();
    const isGap = before === undefined || now - this.#updatedAt > LONGEST_GAP;
    this.#updatedAt = now;
    for (const found of locks) {
      const last = before?.get(found.lock);
      const news = changesOf(found, last?.lock);
      const isNew = last === undefined || news.some(([what]) => NEW.includes(what));
      const isLonger = !isNew && left(found) > left(last.lock) - (askedAt - last.seenAt) + RENEWED_BY;
      const renewed = isNew ? null : (isLonger && found.owner === last.lock.owner) || last.lock.renewed;
      // Redis says the registryKey of some locks only while somebody listens for their release.
      const { registryKey, key } = found.registryKey === null && last !== undefined ? last.lock : found;
      const lock = { ...found, registryKey, key, renewed };
      const first: Seen = { since: now, isOlder: isGap };
      const holders = new Map(
        lock.holders.map((holder) => {
          const owner = holderOf(ownerOf(holder));
          const seen = last?.holders.get(owner);
          // Java has one owner value for all that it holds: after a gap, this may be another hold.
          const isSame = seen !== undefined && !(isGap && holder.acquiredAt === null);
          return [owner, isSame ? seen : first];
        }),
      );
      known.set(lock.lock, { lock, seenAt: now, holders });
      if (before !== undefined) changes.push(...news.map((one) => changeOf(at, lock.lock, one)));
    }
    for (const [name, { lock }] of before ?? []) {
      const [first] = lock.holders;
      if (!known.has(name) && first !== undefined) changes.push(changeOf(at, name, ['free', first]));
    }
    this.#known = known;
    return changes;
  }

  /** The locks of the last list, with what the earlier ones tell. */
  seen(now: number): SeenLock[] {
    return [...(this.#known?.values() ?? [])].map(({ lock, holders: seen }) => {
      const holders = lock.holders.map((holder) => {
        const { since, isOlder } = seen.get(holderOf(ownerOf(holder))) as Seen;
        if (holder.heldFor !== null) return holder;
        // The first list says nothing of how long.
        const heldFor = isOlder && since === now ? null : Math.round(now - since);
        return withTimes(holder, { heldFor, isOlder });
      });
      const { heldFor = null, isOlder = false } = (holders[0] ?? {}) as Partial<Holder>;
      return { ...lock, holders, heldFor, isOlder };
    });
  }
}

function left({ remaining }: FoundLock): number {
  return remaining ?? Number.POSITIVE_INFINITY;
}

function changeOf(at: Date, lock: string, [what, { holder, owner }]: News): Change {
  return { at, lock, what, holder, owner };
}

function changesOf(lock: FoundLock, last: FoundLock | undefined): News[] {
  const [first] = lock.holders;
  const [before] = last?.holders ?? [];
  // Somebody may wait for a lock that nobody holds.
  if (first === undefined) return before === undefined ? [] : [['free', before]];
  if (last === undefined || before === undefined) return [['taken', first]];
  if (lock.format === 'shared' && last.format === 'shared') {
    const isKeptNow = ({ isKept, owner }: Holder): boolean =>
      isKept && last.holders.some((one) => one.owner === holderOf(owner));
    const kept = lock.holders.filter(isKeptNow).map((one): News => ['kept', one]);
    const gone = newIn(last, lock);
    const again: News[] = [];
    const others = newIn(lock, last).filter((one) => {
      const at = gone.findIndex(({ holder }) => holder === one.holder);
      if (at >= 0) again.push(...gone.splice(at, 1).map((): News => ['taken', one]));
      return at < 0;
    });
    const came = others.map((one, i): News => [i < gone.length ? 'passed on' : 'entered', one]);
    return [...kept, ...again, ...came, ...gone.slice(others.length).map((one): News => ['left', one])];
  }
  // A lock of Java is shown as one, and not shown, in turn: while somebody listens to its releases it is.
  if (firstOwnerOf(lock) === firstOwnerOf(last)) return [];
  const did = lock.isKept ? 'kept' : isDetached(first.owner) ? 'detached' : undefined;
  if (did !== undefined && holderOf(first.owner) === before.owner) return [[did, first]];
  return [[first.holder === before.holder ? 'taken' : 'passed on', first]];
}

/** The holders of `one` that `other` does not have, kept or not. */
function newIn(one: FoundLock, other: FoundLock): Holder[] {
  const others = new Set(other.holders.map(({ owner }) => holderOf(owner)));
  return one.holders.filter(({ owner }) => !others.has(holderOf(owner)));
}
