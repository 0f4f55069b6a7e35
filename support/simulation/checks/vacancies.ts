import type { SharedKind } from '../../../lib/api/lock-types';
import { isDetached, isWithoutHolder } from '../../../lib/api/owner-name';
import { isShared, keysOf, type LockType } from '../plan';
import type { ScriptRun } from '../server/redis-server';
import { hostOf, isLeftToPollers, lockName, type Member, membersOf, ownerOf, quietFor, type World } from '../world';
import type { LeaseChecks } from './leases';

/** ms in which a process that nothing disturbs takes what it was granted. */
const TAKEN_WITHIN = 1_500;

/** ms after the death of a process in which what it has sent is executed, where nothing delays that. */
const EXECUTED_WITHIN = 500;

/** What callers ask for: one of a kind of shared lock, or a lock. */
type Kind = SharedKind | undefined;

/** The owner value of a lock, and the one before it. */
interface Owners {
  readonly now: string | undefined;
  readonly before: string | undefined;
  /** When the key was to expire at first. */
  readonly end: number;
  /** An attempt or a renewal of its owner was executed: it is taken for the full ttl. */
  hasFullTtl: boolean;
}

/** Since when each lock could be taken, in Redis. */
export class Vacancies {
  readonly #world: World;
  readonly #leases: LeaseChecks;
  readonly #keys: readonly string[];
  readonly #kinds: readonly Kind[];
  readonly #freeSince = new Map<string, number>();
  readonly #idleSince = new Map<string, number>();
  readonly #owners = new Map<string, Owners>();
  readonly #takesMany: boolean;
  #onTheWay = 0;
  #notedAt = 0;

  constructor(world: World, leases: LeaseChecks) {
    this.#world = world;
    this.#leases = leases;
    this.#keys = keysOf(world.plan);
    this.#takesMany = world.plan.callers.some(({ rounds }) => rounds.some(({ takes }) => takes > 1));
    this.#kinds = kindsOf(world.plan.lockType);
  }

  /** After every event. `isAwaited`: somebody waits for it. `run`: the script that was executed just now. */
  note(isAwaited: (key: string, kind: SharedKind) => boolean, run?: ScriptRun): void {
    const { server, timeline } = this.#world;
    if (this.#keys.some((key) => isDetached(this.#owners.get(key)?.now)))
      this.#onTheWay += timeline.now - this.#notedAt;
    this.#notedAt = timeline.now;
    for (const key of this.#keys) {
      const lock = lockName(key);
      const owner = ownerOf(server, lock);
      this.#noteOwner(key, owner, run);
      if (isShared(this.#world.plan.lockType)) this.#world.permits.note(key);
      const all = membersOf(server, lock);
      // Who has it in vain does not count.
      const idle = all.filter(({ owner }) => !this.#isInVain(key, owner));
      for (const kind of this.#kinds) {
        const isFree = kind === undefined ? !server.keys.has(lock) : this.#isOpenTo(kind, key, all, isAwaited);
        const isKeptForOthers = isFree && (isLeftToPollers(server, lock) || server.keys.has(`{${lock}}:waiters`));
        remember(this.#freeSince, idOf(key, kind), isFree && !isKeptForOthers, timeline.now);
        const isIdle = kind === undefined ? this.isUnclaimed(key) : this.#isOpenTo(kind, key, idle, isAwaited);
        remember(this.#idleSince, idOf(key, kind), isFree || isIdle, timeline.now);
      }
    }
  }

  /** ms so far in which a lock was that of a lease that was detached, and not adopted yet. */
  get onTheWay(): number {
    return this.#onTheWay;
  }

  /** Since when an attempt could take it; `undefined`: it could not. */
  freeSince(key: string, kind: Kind): number | undefined {
    return this.#freeSince.get(idOf(key, kind));
  }

  /** As `freeSince`, but also while it is for the waiters in front, or is granted to a ticket that nobody has entered with. */
  idleSince(key: string, kind: Kind): number | undefined {
    return this.#idleSince.get(idOf(key, kind));
  }

  /** It was handed over to a ticket that nobody has entered with. */
  isUnclaimed(key: string): boolean {
    return ownerOf(this.#world.server, lockName(key))?.includes('@') === true && this.isUntaken(key);
  }

  /** It was granted, and nobody has entered. */
  isUntaken(key: string): boolean {
    const { server, plan } = this.#world;
    const owner = ownerOf(server, lockName(key));
    return (
      plan.lockType !== 'multi' &&
      owner !== undefined &&
      !isWithoutHolder(owner) &&
      !this.#leases.wasOpened(owner) &&
      // An adoption that failed is left as it is, for another try. Its key ends with its ttl.
      !isDetached(this.#owners.get(key)?.before) &&
      !this.#isOfUnreachableHolder(key)
    );
  }

  #noteOwner(key: string, now: string | undefined, run: ScriptRun | undefined): void {
    const host = this.#world.plan.lockType === 'multi' ? hostOf(this.#world, now) : undefined;
    // A lock of several keys may have it, and wait for another one.
    if (host !== undefined) this.#leases.noteHeld(host, key);
    const end = this.#world.server.keys.expiresAt(lockName(key)) ?? 0;
    const known = this.#owners.get(key);
    if (known === undefined || known.now !== now) {
      const hasFullTtl = now !== undefined && isAttemptOf(now, end - this.#world.server.time, run?.args ?? []);
      this.#owners.set(key, { now, before: known?.now, end, hasFullTtl });
    } else if (end > known.end) {
      known.hasFullTtl = true;
    }
  }

  /**
   * A process that handed it over to itself, and died or was cut off, is a holder that died or was cut off. So is one
   * whose attempt or renewal, which takes the lock for the full ttl, was on its way then; and one that closed its registry
   * meanwhile, as far as it could.
   */
  #isOfUnreachableHolder(key: string): boolean {
    const owners = this.#owners.get(key);
    const host = hostOf(this.#world, owners?.now);
    if (owners === undefined || host === undefined) return false;
    const isGone = !host.process.isAlive || host.closing === 'closed';
    const isUnreachable = isGone || quietFor(this.#world, host) < TAKEN_WITHIN;
    return isUnreachable && (owners.hasFullTtl || hostOf(this.#world, owners.before) === host);
  }

  /** It was given to a process that had died while it waited. */
  #isInVain(key: string, owner: string): boolean {
    const { process, lastDelayed = 0 } = hostOf(this.#world, owner) ?? {};
    if (process === undefined || process.isAlive || this.#leases.wasOpened(owner)) return false;
    return this.#leases.grantedAt(key, owner) > Math.max(process.diedAt, lastDelayed) + EXECUTED_WITHIN;
  }

  /** Those that have a shared lock leave room. Beside readers, a reader has to wait for the writers in front. */
  #isOpenTo(
    kind: SharedKind,
    key: string,
    members: readonly Member[],
    isAwaited: (key: string, kind: SharedKind) => boolean,
  ): boolean {
    if (kind === 'semaphore') {
      // A caller that asks for many waits for all of them.
      return this.#takesMany ? members.length === 0 : members.length < Math.min(...this.#world.permits.numbers(key));
    }
    if (members.length === 0) return true;
    return kind === 'read' && members.every((member) => member.kind === 'read') && !isAwaited(key, 'write');
  }
}

function kindsOf(lockType: LockType): readonly Kind[] {
  if (lockType === 'semaphore') return ['semaphore'];
  return lockType === 'read-write' ? ['read', 'write'] : [undefined];
}

/** The script was sent for this owner, or for its ticket, and gave it the ttl that it asked for. */
function isAttemptOf(owner: string, life: number, args: readonly string[]): boolean {
  return args.includes(owner.replace(/@.*/, '')) && args.includes(String(life));
}

function idOf(key: string, kind: Kind): string {
  return kind === undefined ? key : `${kind} ${key}`;
}

function remember(since: Map<string, number>, id: string, isSo: boolean, now: number): void {
  if (!isSo) since.delete(id);
  else if (!since.has(id)) since.set(id, now);
}
