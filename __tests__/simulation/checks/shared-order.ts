import { isKept } from '../../../lib/protocols/min-hold/kept';
import { SHARED_KINDS, type SharedKind } from '../../../lib/protocols/semaphore-read-write/shared-kinds';
import { HEAD_START } from '../../../lib/protocols/semaphore-read-write/shared-scripts';
import { isShared, keysOf } from '../plan';
import { hostOf, lockName, membersOf, quietFor, sumOf, takenBy, type World } from '../world';
import type { OpenLease } from './leases';

/** A ticket in the queue of a shared lock. */
interface Ticket {
  readonly member: string;
  readonly kind: SharedKind;
  readonly arrival: number;
  readonly takes: number;
}

/** ms after Redis has let the first reader of a process in, in which others enter with its hold: `FRESH`. */
const OPEN = 50;

/** ms for which nothing has disturbed a process whose clock is right. */
const QUIET = 1_000;

/**
 * Nobody overtakes in the queue of a shared lock: a ticket in front counts as if it had entered. But when a writer has
 * left, all readers that wait by then enter, and a process keeps its permit if others came only a little earlier. Checked
 * after each script, in what the scripts keep in Redis.
 */
export class SharedOrderChecks {
  readonly #world: World;
  readonly #locks: readonly string[];
  /** By lock, after the last script: who was in it until when, and who in its queue. */
  readonly #members = new Map<string, ReadonlyMap<string, number>>();
  readonly #queues = new Map<string, ReadonlySet<string>>();
  /** By ticket: its arrival, as it last stood in the queue, and when it was first seen there or in the lock. */
  readonly #arrivals = new Map<string, number>();
  readonly #seenAt = new Map<string, number>();
  readonly #enteredAt = new Map<string, number>();
  /** By lock: until when a writer had it, and when one was last removed from it, before it expired; µs. */
  readonly #writtenUntil = new Map<string, number>();
  readonly #leftAt = new Map<string, number>();
  /** By member: when its first reader entered. */
  readonly #openedAt = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
    this.#locks = isShared(world.plan.lockType) ? keysOf(world.plan).map(lockName) : [];
  }

  /** After each script: one may be about several locks, and let a reader in before a writer queues. */
  ran(): void {
    for (const lock of this.#locks) this.#check(lock);
  }

  #check(lock: string): void {
    const before = this.#members.get(lock) ?? new Map<string, number>();
    const queuedBefore = this.#queues.get(lock) ?? new Set();
    const members = membersOf(this.#world.server, lock);
    const queue = this.#queueOf(lock);
    const entrants = members.filter(({ member }) => !before.has(member));
    const waiting = queue.filter(({ member }) => queuedBefore.has(member));
    const { server, timeline } = this.#world;
    const gone = [...before].filter(([one]) => !members.some(({ member }) => one === member));
    const writer = gone.find(([member]) => member.startsWith('write:'));
    if (writer !== undefined) {
      this.#writtenUntil.set(lock, server.time * 1_000);
      // Nothing may tell of a writer whose key has expired.
      if (writer[1] > server.time) this.#leftAt.set(lock, server.time * 1_000);
    }
    for (const { member, kind, owner } of entrants) {
      this.#enteredAt.set(member, timeline.now);
      // A process gives a permit back, and keeps it for its next caller.
      const isExchange = kind === 'semaphore' && gone.some(([one]) => this.#hostOf(one) === this.#hostOf(member));
      const holders = sumOf(members) - sumOf(entrants);
      // A lease that is kept takes the place of another one.
      if (!isKept(owner)) this.#entered(lock, member, kind, holders, waiting, isExchange ? HEAD_START : 0);
    }
    for (const { member, arrival } of queue) {
      this.#arrivals.set(member, arrival);
      if (!this.#seenAt.has(member)) this.#seenAt.set(member, timeline.now);
    }
    this.#members.set(lock, new Map(members.map(({ member, life }) => [member, server.time + life])));
    this.#queues.set(lock, new Set(queue.map(({ member }) => member)));
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
    } else if (timeline.now - enteredAt > OPEN + 1 && quietFor(this.#world, host) > QUIET) {
      const ms = (timeline.now - enteredAt).toFixed(1);
      violations.report('overtaken', key, `${caller} joined the readers of "${key}", who had it for ${ms} ms`);
    }
  }

  #hostOf(member: string): unknown {
    return hostOf(this.#world, member.slice(member.indexOf(':') + 1));
  }

  #entered(
    lock: string,
    member: string,
    kind: SharedKind,
    holders: number,
    queue: readonly Ticket[],
    headStart: number,
  ): void {
    const { plan, violations } = this.#world;
    const arrival = (this.#arrivals.get(member) ?? Number.POSITIVE_INFINITY) - headStart;
    if (kind === 'read' && arrival < (this.#writtenUntil.get(lock) ?? 0) + 1_000) return; // counted in whole ms
    // Readers that waited when a writer left come before the next one.
    const isFirst = ({ kind: of, arrival: since }: Ticket): boolean =>
      since < arrival || (kind === 'write' && of === 'read' && since <= (this.#leftAt.get(lock) ?? 0));
    const front = queue.filter(isFirst);
    const first = kind === 'read' ? front.find((ticket) => ticket.kind === 'write') : front[0];
    if (first === undefined || (kind === 'semaphore' && holders + sumOf(front) + takenBy(member) <= plan.permits))
      return;
    violations.report('overtaken', lock, `${member} entered ${lock} before ${first.member}, which came earlier`);
  }

  /** The tickets whose processes are waited for. */
  #queueOf(lock: string): readonly Ticket[] {
    const { server } = this.#world;
    const waiters = `{${lock}}:waiters`;
    if (server.keys.kind(waiters) !== 'hash') return [];
    const fields = [...(server.keys.get(waiters, 'hash') ?? [])];
    return fields.flatMap(([member, value]) => {
      const kind = SHARED_KINDS.find((one) => member.startsWith(`${one}:`));
      const [arrival, seenUntil] = value.split(':').map(Number);
      if (kind === undefined || (seenUntil ?? 0) <= server.time) return [];
      return [{ member, kind, arrival: arrival ?? 0, takes: takenBy(member) }];
    });
  }
}
