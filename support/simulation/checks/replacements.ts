import { isDetached } from '../../../lib/api/owner-name';
import { keysOf } from '../plan';
import { type Host, hostOf, lockName, ownerOf, quietFor, type World } from '../world';
import type { OpenLease } from './leases';

/** A lock that a call took from its holder. */
interface Take {
  readonly lock: string;
  readonly by: string;
  readonly at: number;
  /** Since when the tasks are over that it waits for; `undefined`: they are not. */
  endedAt?: number | undefined;
  /** Redis lost the lock meanwhile, or its key has ended: its process could not renew it. */
  isLost: boolean;
}

/** ms by which a grace may be shorter for a process, and a task may end before the simulation knows. */
const SLACK = 5;

/**
 * ms in which a process is told that its lock was taken, and it is known that its task has ended: it is reminded every 250 ms,
 * and this is looked at every 150 ms. Where each message may be lost, it takes several reminders.
 */
const REMINDED_WITHIN = 600;
const KNOWN_WITHIN = 4_000;

/** ms after which a task has been asked that it was asked. */
const ASKED_WITHIN = 100;

/** P14: a lock is taken only from a process that is told, and the next task begins when the one before has ended. */
export class Replacements {
  readonly #world: World;
  readonly #open: ReadonlySet<OpenLease>;
  /** By the owner value from which it was taken. */
  readonly #takes = new Map<string, Take>();
  readonly #opened = new Set<string>();
  readonly #locks: readonly string[];
  /** By lock: who had it after the last script, and until when. */
  readonly #owners = new Map<string, string | undefined>();
  readonly #ends = new Map<string, number>();
  /** Of all calls of a seed. */
  readonly #grace: number;

  constructor(world: World, open: ReadonlySet<OpenLease>) {
    this.#world = world;
    this.#open = open;
    this.#locks = keysOf(world.plan).map(lockName);
    const graces = world.plan.callers.flatMap(({ rounds }) => rounds.flatMap(({ grace }) => grace ?? []));
    this.#grace = Math.min(...graces);
  }

  /** After each script; true when it has taken a lock from its holder. Several calls may be one script. */
  ran(name: string | undefined): boolean {
    const { server, timeline } = this.#world;
    let isTaken = false;
    for (const lock of this.#locks) {
      const [from, by] = [this.#owners.get(lock), ownerOf(server, lock)];
      this.#owners.set(lock, by);
      if (by !== from && server.time >= (this.#ends.get(lock) ?? Number.POSITIVE_INFINITY)) this.#loseTakesOf(lock);
      this.#ends.set(lock, server.keys.expiresAt(lock) ?? Number.POSITIVE_INFINITY);
      // An attempt may be granted once more that nobody knows to have been granted.
      if (by !== undefined && by !== from) this.#takes.delete(by);
      if (from === undefined || by === undefined || from === by || name?.startsWith('replace') !== true) continue;
      isTaken = true;
      this.#takes.set(from, { lock, by, at: timeline.now, isLost: false });
      this.#checkTold(from);
    }
    return isTaken;
  }

  #checkTold(from: string): void {
    const { server, violations } = this.#world;
    const host = hostOf(this.#world, from);
    if (host === undefined || isDetached(from) || server.hears(`@${host.clientId}`)) return;
    const text = `the lock was taken from ${host.process.name}, which hears nothing`;
    violations.report('taken from who is not told', from, text);
  }

  isTaken({ lease }: OpenLease): boolean {
    return this.#takes.has(lease.owner);
  }

  /** Its lock was taken, and its process was paused until the grace was over, or the key of who took it had ended. */
  isOutlived({ lease }: OpenLease): boolean {
    const take = this.#takes.get(lease.owner);
    return take !== undefined && (take.isLost || this.#world.timeline.now - take.at >= this.#grace - SLACK);
  }

  /** A task begins: those have ended from which its lock was taken, or their grace is over. */
  opened(entry: OpenLease): void {
    const { timeline, violations } = this.#world;
    const { host, key, caller, lease, isExcused } = entry;
    this.#opened.add(lease.owner);
    // The key was lost meanwhile, or the process stood still until the lease was over, or the grace of who has taken it.
    if (isExcused || this.isOutlived(entry) || host.process.observe(() => lease.remaining) === 0) return;
    for (const other of this.#open) {
      const take = this.#takes.get(other.lease.owner);
      const isOwn = other.lease.owner === lease.owner; // passed on, before its process was told
      if (take === undefined || other.key !== key || isOwn || other.isExcused || !other.host.process.isAlive) continue;
      const ms = timeline.now - take.at;
      // Who has called `unlock` has ended, though nothing answers it.
      if (take.isLost || other.lease.isUnlocked || ms >= this.#grace - SLACK) continue;
      const text = `${caller} has "${key}", and ${other.caller} has not ended, from which it was taken ${ms.toFixed(0)} ms ago`;
      violations.report('began before the end', key, text);
    }
  }

  /** Redis lost the lock, or it was unlocked by force. */
  lost(key: string): void {
    this.#loseTakesOf(lockName(key));
  }

  #loseTakesOf(lock: string): void {
    for (const take of this.#takes.values()) take.isLost ||= take.lock === lock;
  }

  /** The locks that this process has taken, and does not have to know yet that the task before has ended. */
  awaitedBy({ clientId }: Host): string[] {
    const { server, timeline } = this.#world;
    const isDeaf = !server.hears(`@${clientId}`);
    return [...this.#takes.values()].flatMap(({ lock, by, endedAt = timeline.now }) => {
      const isOwn = by.startsWith(`${clientId}:`) && ownerOf(server, lock) === by && !this.#opened.has(by);
      return isOwn && (isDeaf || timeline.now - endedAt < KNOWN_WITHIN) ? [lock] : [];
    });
  }

  /** Now and then: a holder is told that its lock was taken, and who has taken it knows when the task before has ended. */
  check(): void {
    for (const entry of this.#open) this.#checkSignal(entry);
    this.#checkEnds();
  }

  #checkSignal({ host, caller, key, lease, isExcused }: OpenLease): void {
    const { timeline, violations } = this.#world;
    const take = this.#takes.get(lease.owner);
    if (take === undefined || take.isLost || isExcused) return;
    const ms = timeline.now - take.at;
    if (ms < this.#within || !this.#areUndisturbed([host, hostOf(this.#world, take.by)], ms)) return;
    if (host.process.observe(() => (lease.signal.aborted ? 1 : 0)) === 1) return;
    const text = `${caller} was not told that "${key}" was taken from it ${ms.toFixed(0)} ms ago`;
    violations.report('not told', caller, text);
  }

  #checkEnds(): void {
    const { server, timeline, violations } = this.#world;
    const chained = new Set([...this.#takes.values()].map((take) => take.by).filter((one) => !this.#opened.has(one)));
    for (const [from, take] of this.#takes) {
      const { lock, by } = take;
      // One that waits for the end itself may have closed its registry meanwhile.
      if (chained.has(from) || take.isLost || ownerOf(server, lock) !== by || this.#opened.has(by)) continue;
      const isRunning = [...this.#open].some(
        ({ key, lease }) => lockName(key) === lock && this.#takes.has(lease.owner),
      );
      take.endedAt = isRunning ? undefined : (take.endedAt ?? timeline.now);
      const ms = timeline.now - (take.endedAt ?? timeline.now);
      if (ms < this.#within || !this.#areUndisturbed([hostOf(this.#world, from), hostOf(this.#world, by)], ms))
        continue;
      violations.report('end not known', lock, `${by} waits for ${from}, whose task has ended ${ms.toFixed(0)} ms ago`);
    }
  }

  /** ms in which a message has come, or a reminder. */
  get #within(): number {
    return this.#world.plan.messageFaults.lost === 0 ? REMINDED_WITHIN : KNOWN_WITHIN;
  }

  /** They hear messages, and have been in no trouble for so long. One that hears nothing waits for all of the grace. */
  #areUndisturbed(hosts: readonly (Host | undefined)[], ms: number): boolean {
    return hosts.every(
      (host) =>
        host?.process.isAlive &&
        host.closing === 'no' &&
        this.#world.server.hears(`@${host.clientId}`) &&
        quietFor(this.#world, host) > ms,
    );
  }

  /** Those that have the lock, as Redis knows it. */
  holders(key: string): OpenLease[] {
    const owner = ownerOf(this.#world.server, lockName(key));
    return [...this.#open].filter((entry) => entry.key === key && entry.lease.owner === owner);
  }

  /** Somebody heard that the lock is asked for: those that had it before. */
  asked(key: string, before: readonly OpenLease[]): void {
    const { plan, timeline, violations } = this.#world;
    if (!plan.isCalm) return;
    timeline.after(ASKED_WITHIN, () => {
      for (const { caller, host, lease } of before.filter((entry) => this.#open.has(entry))) {
        if (!host.process.isAlive || lease.signal.aborted || quietFor(this.#world, host) < ASKED_WITHIN) continue;
        const isAsked = host.process.observe(() => (lease.asked.aborted ? 1 : 0)) === 1;
        if (!isAsked)
          violations.report('not asked', caller, `${caller} was not asked for "${key}", though that was heard`);
      }
    });
  }
}
