import { LockAskedError } from '../api/errors';
import { nameIn } from '../api/owner-name';
import { clock, within } from '../internal/clock';
import type { LockNames } from '../redis/names';
import type { Inboxes } from './backend';
import type { InboxOfLease } from './internal-lease';
import type { RedisLease } from './lease';
import { LossSignal, takers } from './loss';
import type { LockProtocol, Ownership } from './protocol';

/*
 * The messages between the registries of a lock, all of text, with spaces between their parts:
 *
 *   taken <owner> <by> <lock>         the lock was taken from the owner, by another owner, or by force
 *   ended <owner> <lock>              the task of that owner has ended
 *   asked <owner> <by> <why> <lock>   somebody waits, and would like the owner to end early
 *   held? <owner> <by> <lock>         does the process of the owner hear messages? It answers:
 *   held <owner> <lock>
 *
 * None of them ends a lease: a process that hears one asks Redis. Unknown words are ignored: versions may differ.
 */

/** ms in which a process that hears messages answers. */
const ANSWERS_WITHIN = 500;

/** How many tasks under lost leases are known: a lease that is never unlocked would stay for good. */
const MOST_RUNNING = 1_000;

/** Characters of a reason. */
const LONGEST_WHY = 200;

/** The lock of this registry that a message is about. */
interface LockOfMessage {
  readonly leases: readonly RedisLease[];
  readonly passing: { openProtocol(): LockProtocol };
  mayRest(): void;
}

export function messageTaken(owner: string, by: string, { lock }: LockNames): string {
  return `taken ${owner} ${by} ${lock}`;
}

/**
 * Where a registry hears of its leases: that one was taken, and by whom; that somebody asks for it; that a task whose lock it
 * has taken has ended. It is opened when one of these is needed first, and lasts until the registry is closed.
 */
export class Inbox implements InboxOfLease {
  /** An owner value of this registry that no lease has: by it others find the inbox. */
  readonly #address: string;
  readonly #inboxes: Inboxes;
  /** ms */
  readonly #timeout: number;
  readonly #locksOf: (name: string) => readonly LockOfMessage[];
  readonly #missed: () => void;
  #opened: Promise<void> | undefined;
  /** The tasks whose lease was lost, and those that follow another one, by owner: who took their lock, if that is known. */
  readonly #running = new Map<string, { readonly hold?: object; by?: string | undefined }>();
  readonly #signals = new WeakMap<object, LossSignal>();
  /** Who has asked for a lease first, and why. */
  readonly #asked = new WeakMap<object, LockAskedError>();
  /** What to call with each word about an owner. */
  readonly #watchers = new Map<string, Set<(word: string) => void>>();

  /** `id`: of the registry. `timeout` in ms. `missed`: called where messages may have been missed. */
  constructor(
    inboxes: Inboxes,
    id: string,
    timeout: number,
    locksOf: (name: string) => readonly LockOfMessage[],
    missed: () => void,
  ) {
    this.#address = `${id}:0`;
    this.#inboxes = inboxes;
    this.#timeout = timeout;
    this.#locksOf = locksOf;
    this.#missed = missed;
  }

  get countsAll(): boolean {
    return this.#inboxes.countsAll;
  }

  /** Resolves when messages come, or it is known that they do not. */
  open(): Promise<void> {
    this.#opened ??= this.#inboxes.open(this.#address, (message) => void this.#received(message), this.#missed);
    return this.#opened;
  }

  // For leases of this registry

  signalOf(lease: object): AbortSignal {
    void this.open();
    let asked = this.#signals.get(lease);
    if (asked === undefined) {
      asked = new LossSignal();
      this.#signals.set(lease, asked);
      const before = this.#asked.get(lease);
      if (before !== undefined) asked.abort(before);
    }
    return asked.signal;
  }

  lost(lease: RedisLease, names: LockNames): void {
    const { owner, hold, isUnlocked } = lease;
    if (isUnlocked) this.ended(lease, names);
    else if (this.#opened !== undefined) {
      const [first = owner] = this.#running.keys();
      if (this.#running.size >= MOST_RUNNING) this.#running.delete(first);
      this.#running.set(owner, { by: takers.get(hold), ...this.#running.get(owner), hold });
    }
  }

  ended({ owner, hold }: { readonly owner: string; readonly hold?: object }, names: LockNames): void {
    const by = this.#running.get(owner)?.by ?? (hold && takers.get(hold));
    this.#running.delete(owner);
    if (by !== undefined) void this.#sendEnded(by, owner, names.lock);
  }

  // For those that take a lock from its owner, or ask for it

  /** An owner is to take a lock, and its task to follow another one: it has not ended before `enters` or `ended`. */
  begins(owner: string): void {
    this.#running.set(owner, {});
  }

  enters(owner: string): void {
    this.#running.delete(owner);
  }

  /** Tells the process of `owner` once more that `by` has taken its lock: a message may have been lost. */
  remind(owner: string, by: string, names: LockNames): Promise<unknown> {
    return this.#send(owner, messageTaken(owner, by, names), names.lock);
  }

  /** Calls back with each word about an owner: `held` or `ended`. Returns what stops it. */
  watch(owner: string, heard: (word: string) => void): () => void {
    const watchers = this.#watchers.get(owner) ?? new Set();
    this.#watchers.set(owner, watchers.add(heard));
    return () => {
      if (watchers.delete(heard) && watchers.size === 0) this.#watchers.delete(owner);
    };
  }

  /** Whether the process of this owner hears messages: it is asked. */
  async isHeardBy(owner: string, names: LockNames): Promise<boolean> {
    await within(ANSWERS_WITHIN, this.open());
    let isHeard = false;
    let stop = (): void => undefined;
    const answer = new Promise<void>((resolve) => {
      stop = this.watch(owner, (word) => {
        isHeard ||= word === 'held';
        resolve();
      });
    });
    void this.#send(owner, `held? ${owner} ${this.#address} ${names.lock}`, names.lock);
    await within(ANSWERS_WITHIN, answer);
    stop();
    return isHeard;
  }

  /** Asks those that have a lock to end early. Resolves to whether one of them heard it. */
  async ask(owners: readonly string[], why: string, names: LockNames): Promise<boolean> {
    const text = encodeURIComponent([...why].slice(0, LONGEST_WHY).join(''));
    const asked = owners.map(async (owner) => {
      if (!this.countsAll && !(await this.isHeardBy(owner, names))) return false;
      const words = `asked ${owner} ${this.#address} ${text} ${names.lock}`;
      return (await this.#inboxes.send(owner, words, names.lock, this.#timeout)) > 0 || !this.countsAll;
    });
    return (await Promise.all(asked)).includes(true);
  }

  #send(owner: string, message: string, lock: string): Promise<unknown> {
    return this.#inboxes.send(owner, message, lock, this.#timeout).catch(() => undefined);
  }

  #sendEnded(by: string, owner: string, lock: string): Promise<unknown> {
    return this.#send(by, `ended ${owner} ${lock}`, lock);
  }

  // What is heard

  async #received(message: string): Promise<void> {
    const [, word = '', owner = '', rest = ''] = /^(\S+) (\S+) (.*)$/s.exec(message) ?? [];
    const [, by = '', more = ''] = /^(\S+) (.*)$/s.exec(rest) ?? [];
    if (word === 'taken') await this.#taken(owner, by, more);
    else if (word === 'held?') await this.#answer(owner, by, more);
    else if (word === 'asked') await this.#askedFor(owner, by, more);
    else for (const heard of [...(this.#watchers.get(owner) ?? [])]) heard(word);
  }

  async #askedFor(owner: string, by: string, rest: string): Promise<void> {
    const [, why = '', name = ''] = /^(\S*) (.*)$/s.exec(rest) ?? [];
    for (const lease of await this.#leasesOf(owner, this.#locksOf(name))) {
      if (this.#asked.has(lease)) continue;
      const reason = new LockAskedError(lease.key, nameIn(by), decoded(why));
      this.#asked.set(lease, reason);
      this.#signals.get(lease)?.abort(reason);
    }
  }

  async #answer(owner: string, by: string, name: string): Promise<void> {
    const locks = this.#locksOf(name);
    if (locks.length === 0) return;
    const isHere = this.#running.has(owner) || (await this.#leasesOf(owner, locks)).length > 0;
    if (isHere) void this.#send(by, `held ${owner} ${name}`, name);
  }

  /** Its lease asks Redis. Where there is none any more, the task has ended. */
  async #taken(owner: string, by: string, name: string): Promise<void> {
    const locks = this.#locksOf(name);
    const [lease] = await this.#leasesOf(owner, locks);
    if (lease !== undefined) {
      const { hold } = lease;
      takers.set(hold, by);
      // A hold that is being released hears of it by that.
      const { state } = hold.isHeld ? await hold.renew(1, this.#timeout) : { state: 'unknown' };
      if (state === 'held') takers.delete(hold);
      return;
    }
    if (this.#isRunning(owner, by)) return;
    const [lock] = locks;
    // One that is evicted has no lease here, and none on its way.
    if (lock !== undefined) {
      const { state } = await new Promise<Ownership>((resolve) => {
        lock.passing.openProtocol().renew(owner, 1, this.#timeout, resolve);
      });
      if (state === 'held' || state === 'unknown') return;
      // What was granted before is known here by now: Redis answered that first.
      if ((await this.#leasesOf(owner, locks)).length > 0) return this.#taken(owner, by, name);
    }
    if (!this.#isRunning(owner, by)) void this.#sendEnded(by, owner, name);
  }

  /** Its lease was lost, and its task may run. `by`: who took its lock, and is to hear of its end. */
  #isRunning(owner: string, by: string): boolean {
    const running = this.#running.get(owner);
    if (running === undefined) return false;
    running.by = by;
    if (running.hold !== undefined) takers.set(running.hold, by);
    return true;
  }

  /**
   * The leases of an owner: one, or those of the readers of this process that share it. The reply that grants it may be on its
   * way: messages come over another connection.
   */
  async #leasesOf(owner: string, locks: readonly LockOfMessage[]): Promise<RedisLease[]> {
    const held = () => locks.flatMap(({ leases }) => leases).filter((lease) => lease.owner === owner);
    const found = held();
    if (found.length > 0) return found;
    await Promise.allSettled(locks.map(({ passing }) => passing.openProtocol().availability.inFlight));
    // Its caller has the lease some jobs later.
    await clock.immediate();
    await clock.immediate();
    for (const lock of locks) lock.mayRest();
    return held();
  }
}

/** A reason is encoded: a message has spaces between its parts. */
function decoded(why: string): string {
  try {
    return decodeURIComponent(why);
  } catch {
    return '';
  }
}
