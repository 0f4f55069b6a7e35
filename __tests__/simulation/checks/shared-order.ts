import { isKept } from '../../../lib/api/owner-name';
import { SHARED_KINDS, type SharedKind } from '../../../lib/protocols/semaphore-read-write/shared-kinds';
import { isShared, keysOf } from '../plan';
import { lockName, membersOf, type World } from '../world';

/** A ticket in the queue of a shared lock. */
interface Ticket {
  readonly member: string;
  readonly kind: SharedKind;
  readonly arrival: number;
}

/**
 * Nobody overtakes in the queue of a shared lock: a ticket in front counts as if it had entered. Checked after each
 * script, in what the scripts keep in Redis.
 */
export class SharedOrderChecks {
  readonly #world: World;
  readonly #locks: readonly string[];
  /** By lock, after the last script: who was in it, and in its queue. */
  readonly #members = new Map<string, ReadonlySet<string>>();
  readonly #queues = new Map<string, ReadonlySet<string>>();
  /** By ticket: its arrival, as it last stood in the queue. */
  readonly #arrivals = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
    this.#locks = isShared(world.plan.lockType) ? keysOf(world.plan).map(lockName) : [];
  }

  /** After each script: one may be about several locks, and let a reader in before a writer queues. */
  ran(): void {
    for (const lock of this.#locks) this.#check(lock);
  }

  #check(lock: string): void {
    const before = this.#members.get(lock) ?? new Set();
    const queuedBefore = this.#queues.get(lock) ?? new Set();
    const members = membersOf(this.#world.server, lock);
    const queue = this.#queueOf(lock);
    const entrants = members.filter(({ member }) => !before.has(member));
    const waiting = queue.filter(({ member }) => queuedBefore.has(member));
    for (const { member, kind, owner } of entrants) {
      // A lease that is kept takes the place of another one.
      if (!isKept(owner)) this.#entered(lock, member, kind, members.length - entrants.length, waiting);
    }
    for (const { member, arrival } of queue) this.#arrivals.set(member, arrival);
    this.#members.set(lock, new Set(members.map(({ member }) => member)));
    this.#queues.set(lock, new Set(queue.map(({ member }) => member)));
  }

  #entered(lock: string, member: string, kind: SharedKind, holders: number, queue: readonly Ticket[]): void {
    const { plan, violations } = this.#world;
    const arrival = this.#arrivals.get(member) ?? Number.POSITIVE_INFINITY;
    const front = queue.filter((ticket) => ticket.arrival < arrival);
    const first = kind === 'read' ? front.find((ticket) => ticket.kind === 'write') : front[0];
    if (first === undefined || (kind === 'semaphore' && holders + front.length < plan.permits)) return;
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
      return [{ member, kind, arrival: arrival ?? 0 }];
    });
  }
}
