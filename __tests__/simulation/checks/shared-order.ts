import { isShared, keysOf } from '../plan';
import { isKept, lockName, membersOf, SHARED_KINDS, type SharedKind, type World } from '../world';

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
  /** By name in Redis. */
  readonly #locks: ReadonlyMap<string, string>;
  /** By lock, after the last script: who was in it, and in its queue. */
  readonly #members = new Map<string, ReadonlySet<string>>();
  readonly #queues = new Map<string, ReadonlySet<string>>();
  /** By ticket: its arrival, as it last stood in the queue. */
  readonly #arrivals = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
    const keys = isShared(world.plan.lockType) ? keysOf(world.plan) : [];
    this.#locks = new Map(keys.map((key) => [lockName(key), key]));
  }

  /** After each script: one may be about several locks, and let a reader in before a writer queues. */
  ran(): void {
    for (const lock of this.#locks.keys()) this.#check(lock);
  }

  #check(lock: string): void {
    const before = this.#members.get(lock) ?? new Set();
    const queuedBefore = this.#queues.get(lock) ?? new Set();
    const members = membersOf(this.#world.server, lock);
    const queue = this.#queueOf(lock);
    const entrants = members.filter(({ member }) => !before.has(member));
    const waiting = queue.filter(({ member }) => queuedBefore.has(member));
    let holders = members.length - entrants.length;
    for (const { member, kind, owner } of entrants) {
      // A lease that is kept takes the place of another one.
      if (!isKept(owner)) this.#entered(lock, member, kind, holders, waiting);
      holders++;
    }
    for (const { member, arrival } of queue) this.#arrivals.set(member, arrival);
    this.#members.set(lock, new Set(members.map(({ member }) => member)));
    this.#queues.set(lock, new Set(queue.map(({ member }) => member)));
  }

  #entered(lock: string, member: string, kind: SharedKind, holders: number, queue: readonly Ticket[]): void {
    const { violations } = this.#world;
    const key = this.#locks.get(lock) ?? '';
    const permits = Math.max(...this.#world.permits.numbers(key));
    if (kind === 'semaphore' && holders >= permits) {
      const text = `${member} entered "${key}" with ${holders} others inside, and it has ${permits} permits`;
      violations.report('too many permits', key, text);
    }
    const arrival = this.#arrivals.get(member) ?? Number.POSITIVE_INFINITY;
    const front = queue.filter((ticket) => ticket.arrival < arrival);
    const first = kind === 'read' ? front.find((ticket) => ticket.kind === 'write') : front[0];
    if (first === undefined || (kind === 'semaphore' && holders + front.length < permits)) return;
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
