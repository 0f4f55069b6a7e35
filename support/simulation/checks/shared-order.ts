import { SHARED_KINDS, type SharedKind } from '../../../lib/api/lock-types';
import { isKept } from '../../../lib/api/owner-name';
import { SET_BACK } from '../../../lib/kinds/shared/scripts';
import { isShared, keysOf } from '../plan';
import type { ScriptRun } from '../server/redis-server';
import { type Host, hostOf, lockName, type Member, membersOf, quietFor, sumOf, takenBy, type World } from '../world';
import type { CallChecks } from './calls';
import type { Grants } from './grants';
import type { OpenLease } from './leases';

/** A ticket in the queue of a shared lock. */
interface Ticket {
  readonly member: string;
  readonly kind: SharedKind;
  readonly arrival: number;
  readonly takes: number;
  /** Its process passes a permit on to it. */
  readonly isServed: boolean;
}

/** ms after Redis has let the first reader of a process in, in which others enter with its hold: `FRESH`. */
const OPEN = 50;

/** ms for which nothing has disturbed a process whose clock is right. */
const QUIET = 1_000;

/** ms; a round trip, and what the loop of a process may be busy with. */
const CLOSE = 50;

/** Where the µs since the call, and the owner of the earlier attempt, stand in the arguments of ENTER. */
const AGE = 9;
const EARLIER = 12;

/**
 * Nobody overtakes in the queue of a shared lock, which has the order of the calls: a ticket in front counts as if it had
 * entered. But when a writer has left, all readers that wait by then enter; and a process goes on with a permit while the
 * processes of those in front do. Checked after each script, in what the scripts keep in Redis.
 */
export class SharedOrderChecks {
  readonly #world: World;
  readonly #grants: Grants;
  readonly #calls: CallChecks;
  /** By name in Redis. */
  readonly #locks: ReadonlyMap<string, string>;
  /** By lock, after the last script: who was in it until when, and who in its queue. */
  readonly #members = new Map<string, ReadonlyMap<string, number>>();
  readonly #queues = new Map<string, ReadonlySet<string>>();
  /** By ticket: its arrival, as it last stood in the queue, and when it was first seen there or in the lock. */
  readonly #arrivals = new Map<string, number>();
  /** By ticket: when its caller called, as its last attempt said it, µs. */
  readonly #called = new Map<string, number>();
  readonly #seenAt = new Map<string, number>();
  readonly #enteredAt = new Map<string, number>();
  /** By lock: until when a writer had it, µs. */
  readonly #writtenUntil = new Map<string, number>();
  /** Readers that waited when a writer left: they come before the next one. */
  readonly #first = new Set<string>();
  /** By member: when its first reader entered. */
  readonly #openedAt = new Map<string, number>();

  constructor(world: World, grants: Grants, calls: CallChecks) {
    this.#world = world;
    this.#grants = grants;
    this.#calls = calls;
    const keys = isShared(world.plan.lockType) ? keysOf(world.plan) : [];
    this.#locks = new Map(keys.map((key) => [lockName(key), key]));
  }

  /** After each script: one may be about several locks, and let a reader in before a writer queues. */
  ran({ args }: ScriptRun): void {
    for (const [kind, ticket, ...more] of runsIn(args)) {
      const age = Number(more[AGE - 2]);
      const earlier = more[EARLIER - 2];
      if (earlier !== undefined && earlier !== ticket) this.#renamed(`${kind}:${earlier}`, `${kind}:${ticket}`);
      if (age >= 0) this.#called.set(`${kind}:${ticket}`, Math.floor(1_000 * this.#world.server.exactTime) - age);
    }
    for (const lock of this.#locks.keys()) this.#check(lock);
  }

  /** Each attempt has an owner value of its own, and takes over what the one before has in Redis. */
  #renamed(earlier: string, member: string): void {
    for (const times of [this.#arrivals, this.#seenAt, this.#enteredAt, this.#openedAt]) {
      const time = times.get(earlier);
      if (time !== undefined && !times.has(member)) times.set(member, time);
    }
    if (this.#first.delete(earlier)) this.#first.add(member);
    const nameOf = (one: string): string => (one === earlier ? member : one);
    for (const [lock, members] of this.#members) {
      if (members.has(earlier)) this.#members.set(lock, new Map([...members].map(([one, end]) => [nameOf(one), end])));
    }
    for (const [lock, queue] of this.#queues) {
      if (queue.has(earlier)) this.#queues.set(lock, new Set([...queue].map(nameOf)));
    }
  }

  #check(lock: string): void {
    const before = this.#members.get(lock) ?? new Map<string, number>();
    const queuedBefore = this.#queues.get(lock) ?? new Set();
    const members = membersOf(this.#world.server, lock);
    this.#checkTogether(lock, members);
    const queue = this.#queueOf(lock);
    const { server, timeline } = this.#world;
    // What was over is there again when the clock of the server is set back.
    const isBack = ({ member }: Member): boolean => server.isSetBack && this.#enteredAt.has(member);
    const entrants = members.filter((one) => !before.has(one.member) && !isBack(one));
    const waiting = queue.filter(({ member }) => queuedBefore.has(member));
    const gone = [...before].filter(([one]) => !members.some(({ member }) => one === member));
    const writer = gone.find(([member]) => member.startsWith('write:'));
    if (writer !== undefined) {
      this.#writtenUntil.set(lock, server.time * 1_000);
      // Nothing may tell of a writer whose key has expired, or was deleted.
      const isLost = this.#grants.lostAt(lock, writer[0].slice('write:'.length)) !== undefined;
      if (writer[1] > server.time && !isLost)
        for (const { member, kind } of queue) if (kind === 'read') this.#first.add(member);
    }
    let holders = sumOf(members) - sumOf(entrants);
    for (const { member, kind, owner, takes } of entrants) {
      this.#enteredAt.set(member, timeline.now);
      const goesOn = kind === 'semaphore' && gone.some(([one]) => this.#hostOf(one) === this.#hostOf(member));
      const others = goesOn ? waiting.filter(({ isServed }) => !isServed) : waiting;
      // A lease that is kept takes the place of another one.
      if (!isKept(owner)) this.#entered(lock, member, kind, holders, others);
      // It has had its turn. An attempt that a client repeats may queue once more.
      this.#first.delete(member);
      holders += takes;
    }
    // Its caller has left, or it was dropped. If it comes again, it comes behind those that wait by then.
    for (const member of queuedBefore)
      if (!queue.some((ticket) => ticket.member === member)) this.#first.delete(member);
    for (const { member, kind, arrival } of queue) {
      // A ticket that the queue had lost is entered again with its first position, which a fault may have delayed.
      const hadPosition = this.#arrivals.get(member) === arrival;
      this.#arrivals.set(member, arrival);
      // One that was dropped, and entered again, is waited for since then.
      if (queuedBefore.has(member)) continue;
      this.#seenAt.set(member, timeline.now);
      if (!hadPosition) this.#checkPosition(lock, member, kind, arrival);
    }
    this.#members.set(lock, new Map(members.map(({ member, life }) => [member, server.time + life])));
    this.#queues.set(lock, new Set(queue.map(({ member }) => member)));
  }

  /** A writer is alone: beside those too that have unlocked, and are kept until their `minHold` ends. */
  #checkTogether(lock: string, members: readonly Member[]): void {
    const writer = members.find(({ kind }) => kind === 'write');
    const other = members.find((one) => one !== writer);
    if (writer === undefined || other === undefined) return;
    const kind = isKept(writer.owner) || isKept(other.owner) ? 'min hold' : 'two holders';
    this.#world.violations.report(kind, lock, `${writer.member} and ${other.member} are in ${lock} at one time`);
  }

  /** A reader has a lease. One that has joined others must not have come when a writer was waiting already. */
  read({ lease, key, host, caller }: OpenLease, calledAt: number): void {
    const { timeline, violations } = this.#world;
    const member = `read:${lease.owner}`;
    const openedAt = this.#openedAt.get(member);
    const enteredAt = this.#enteredAt.get(member) ?? timeline.now;
    if (openedAt === undefined) this.#openedAt.set(member, timeline.now);
    if (openedAt === undefined || calledAt <= openedAt) return;
    const writer = this.#queueOf(lockName(key)).find(
      (ticket) => ticket.kind === 'write' && (this.#seenAt.get(ticket.member) ?? timeline.now) < enteredAt,
    );
    if (writer !== undefined) {
      violations.report('overtaken', key, `${caller} joined the readers of "${key}" while ${writer.member} waited`);
    } else if (timeline.now - openedAt > OPEN + 1 && quietFor(this.#world, host) > QUIET) {
      // Where no message says that it was let in, its process learns that from a poll.
      const ms = (timeline.now - openedAt).toFixed(1);
      violations.report('overtaken', key, `${caller} joined the readers of "${key}", who had it for ${ms} ms`);
    }
  }

  #hostOf(member: string): Host | undefined {
    return hostOf(this.#world, member.slice(member.indexOf(':') + 1));
  }

  /** A ticket came to the queue. The caller that it is for may have waited in its process before. */
  #checkPosition(lock: string, member: string, kind: SharedKind, arrival: number): void {
    const { server, timeline, violations } = this.#world;
    const host = this.#hostOf(member);
    if (host === undefined || quietFor(this.#world, host) < QUIET) return;
    const called = this.#calls.firstCall(host, lock, { kind });
    if (called === undefined || server.wasSetBackAt(called)) return;
    const late = arrival / 1_000 - (server.exactTime - (timeline.now - called)) - host.process.suspended;
    // A command whose script the server did not know came to it another round trip later.
    const roundTrips = host.lastUnknown < called ? CLOSE : 2 * CLOSE;
    // What kept the script of a lost connection on its way is no part of the age that it tells.
    const onTheWay = host.cameLate.get(member.slice(kind.length + 1)) ?? 0;
    if (late - onTheWay <= roundTrips) return;
    const text = `${member} stands ${late.toFixed(1)} ms too late in the queue of ${lock}`;
    violations.report('overtaken', lock, text);
  }

  #entered(lock: string, member: string, kind: SharedKind, holders: number, queue: readonly Ticket[]): void {
    const { violations } = this.#world;
    const key = this.#locks.get(lock) ?? '';
    const permits = Math.max(...this.#world.permits.numbers(key));
    // One that takes all: the number was lowered.
    if (kind === 'semaphore' && holders > 0 && holders + takenBy(member) > permits) {
      const text = `${member} entered "${key}" with ${holders} others inside, and it has ${permits} permits`;
      violations.report('too many permits', key, text);
    }
    const { POSITIVE_INFINITY } = Number;
    const position = this.#arrivals.get(member) ?? POSITIVE_INFINITY;
    const arrival = Math.min(position, this.#called.get(member) ?? POSITIVE_INFINITY);
    const writtenUntil = (this.#writtenUntil.get(lock) ?? 0) + 1_000; // counted in whole ms
    // An arrival may be of the clock before it was set back.
    if (kind === 'read' && (arrival < writtenUntil || this.#world.server.isSetBack)) return;
    const front = queue.filter(
      (ticket) => ticket.arrival < arrival || (kind === 'write' && this.#first.has(ticket.member)),
    );
    const first = kind === 'read' ? front.find((ticket) => ticket.kind === 'write') : front[0];
    const needed = holders + sumOf(front) + takenBy(member);
    if (first === undefined || (kind === 'semaphore' && needed <= permits)) return;
    violations.report('overtaken', lock, `${member} entered ${lock} before ${first.member}, which came earlier`);
  }

  /** The tickets whose processes are waited for: not those from before the clock of the server was set back. */
  #queueOf(lock: string): readonly Ticket[] {
    const { server } = this.#world;
    const waiters = `{${lock}}:waiters`;
    if (server.keys.kind(waiters) !== 'hash') return [];
    const fields = [...(server.keys.get(waiters, 'hash') ?? [])];
    return fields.flatMap(([member, value]) => {
      const kind = SHARED_KINDS.find((one) => member.startsWith(`${one}:`));
      const [arrival, seenUntil = 0, enterUntil = 0] = value.split(':').map(Number);
      if (kind === undefined || seenUntil <= server.time || enterUntil > server.time + SET_BACK) return [];
      const isServed = kind === 'semaphore' && enterUntil > server.time;
      return [{ member, kind, arrival: arrival ?? 0, takes: takenBy(member), isServed }];
    });
  }
}

/** The arguments of each run of a script, which may have run for many locks. */
function runsIn(args: readonly string[]): readonly (readonly string[])[] {
  const [runs = 0, own = 0] = args.map(Number);
  if (!(runs > 0)) return [args];
  const shared = args.slice(2, args.length - runs * own);
  return Array.from({ length: runs }, (_, i) => {
    const at = args.length - (runs - i) * own;
    return [...args.slice(at, at + own), ...shared];
  });
}
