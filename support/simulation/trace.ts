import { holderOf, isDetached } from '../../lib/api/owner-name';
import type { OpenLease } from './checks/leases';
import { isShared } from './plan';
import { type Host, hostOf, lockName, membersOf, ownerOf, type World } from './world';

/** The owner of a key, as the specification has it: its process, and a number; `undefined`: the lock is free. */
type Owner = readonly [process: number, number: number] | undefined;

/** What happened to one lock, in the words of scripts/spec/Trace.tla. Times in whole microseconds. */
export type TraceEvent =
  | readonly ['pass', us: number]
  | readonly ['executed', process: number, age: number, owner: Owner, life: number]
  | readonly ['relied', process: number, owner: Owner, left: number]
  | readonly ['over', process: number]
  | readonly ['fault', owner: Owner, life: number];

/** In place of the process, as in Trace.tla. */
const DETACHED = 9;

/** µs by which the end of a lease may move without a renewal: readings are rounded. */
const ROUNDING = 50;

interface KeyState {
  readonly owner: Owner;
  /** µs of virtual time at which the key is gone. */
  readonly endsAt: number;
}

const FREE: KeyState = { owner: undefined, endsAt: 0 };

/** Writes down what happens to the lock of one key; of a shared lock, to one of its leases, which is a key of its own. */
class LockTrace {
  readonly events: TraceEvent[] = [];
  readonly #world: World;
  readonly #key: string;
  readonly #member: string | undefined;
  readonly #owners = new Map<string, Owner>();
  /** By process: which lease it relies on, and until when. */
  readonly #relied = new Map<number, { readonly entry: OpenLease; readonly until: number }>();
  #last = 0;
  #state = FREE;

  constructor(world: World, key: string, member?: string) {
    this.#world = world;
    this.#key = key;
    this.#member = member;
  }

  executed(host: Host, sentAt: number, isForced: boolean, asking: string | undefined): void {
    const before = this.#state;
    const after = this.#look();
    if (isForced) {
      if (isOther(before, after)) this.#fault(after);
      return;
    }
    const own = host.index + 1;
    if (!isOther(before, after) && after.owner?.[0] !== own) return;
    this.#pass();
    this.#state = after;
    // One that was let in by the script of another lease of its process counts from now, as if another process had done it.
    const isLetIn = this.#member !== undefined && !this.#member.endsWith(`:${asking}`);
    const age = isLetIn ? 0 : this.#last - us(sentAt);
    this.events.push(['executed', own, age, after.owner, Math.max(0, after.endsAt - this.#last)]);
  }

  /** After each event of the simulation. */
  check(open: Iterable<OpenLease>): void {
    const now = us(this.#world.timeline.now);
    if (this.#state.owner !== undefined && this.#state.endsAt <= now) {
      this.#pass();
      this.#state = FREE;
    }
    const state = this.#look();
    if (isOther(this.#state, state)) this.#fault(state);
    const entries = this.#entries(open);
    for (const [process, { entry }] of this.#relied) {
      if (!entry.host.process.isAlive || entry.host.process.isSuspended) continue;
      if (entries.includes(entry) && remainingOf(entry) > 0) continue;
      this.#pass();
      this.#relied.delete(process);
      this.events.push(['over', process]);
    }
    for (const entry of entries) this.#checkLease(entry);
  }

  /** Readers of a process have one lease in Redis: the one that lasts longest stands for them. */
  #entries(open: Iterable<OpenLease>): OpenLease[] {
    const ofKey = [...open].filter(({ key }) => key === this.#key);
    if (this.#member === undefined) return ofKey;
    const ofMember = ofKey.filter(({ kind, lease: { owner } }) => this.#member === `${kind}:${owner}`);
    return ofMember.sort((a, b) => remainingOf(b) - remainingOf(a)).slice(0, 1);
  }

  #checkLease(entry: OpenLease): void {
    const { process, index } = entry.host;
    if (!process.isAlive || process.isSuspended) return;
    const left = remainingOf(entry);
    if (left <= 0) return;
    const until = us(this.#world.timeline.now + left);
    const before = this.#relied.get(index + 1);
    if (before?.entry === entry && until <= before.until + ROUNDING) return;
    this.#pass();
    this.#relied.set(index + 1, { entry, until });
    this.events.push(['relied', index + 1, this.#owner(entry.lease.owner), Math.floor(left * 1_000)]);
  }

  #fault(state: KeyState): void {
    this.#pass();
    this.#state = state;
    this.events.push(['fault', state.owner, Math.max(0, state.endsAt - this.#last)]);
  }

  #pass(): void {
    const now = us(this.#world.timeline.now);
    if (now > this.#last) this.events.push(['pass', now - this.#last]);
    this.#last = now;
  }

  #look(): KeyState {
    const { server, timeline } = this.#world;
    const lock = lockName(this.#key);
    if (this.#member !== undefined) {
      const end = server.keys.kind(lock) === 'zset' ? server.keys.get(lock, 'zset')?.get(this.#member) : undefined;
      const left = (end ?? 0) - server.exactTime;
      if (left <= 0) return FREE;
      return { owner: this.#owner(this.#member.slice(this.#member.indexOf(':') + 1)), endsAt: us(timeline.now + left) };
    }
    const owner = this.#owner(ownerOf(server, lock));
    if (owner === undefined) return FREE;
    // It is still there in the very ms of its end.
    const left = (server.keys.expiresAt(lock) ?? 0) + 1 - server.exactTime;
    return { owner, endsAt: us(timeline.now + left) };
  }

  #owner(value: string | undefined): Owner {
    if (value === undefined) return undefined;
    const known = this.#owners.get(value);
    if (known !== undefined) return known;
    // No process: it was detached, and any process may adopt it.
    const process = isDetached(value) ? DETACHED : (hostOf(this.#world, holderOf(value))?.index ?? -1) + 1;
    const owner = [process, this.#owners.size + 1] as const;
    this.#owners.set(value, owner);
    return owner;
  }
}

function us(ms: number): number {
  return Math.round(ms * 1_000);
}

function isOther(one: KeyState, other: KeyState): boolean {
  return one.owner !== other.owner || Math.abs(one.endsAt - other.endsAt) > 1;
}

/** ms of virtual time; the clock of a process may be faster or slower. */
function remainingOf({ lease, host }: OpenLease): number {
  return host.process.observe(() => lease.remaining) / host.process.rate;
}

/** Writes down what happens to each lock of a simulation, for `npm run simulate -- --trace`. */
export class Trace {
  readonly #world: World;
  readonly #keys: readonly string[];
  readonly #locks = new Map<string, LockTrace>();
  /** When the command was sent that the server executes. */
  #sentAt = 0;

  constructor(world: World, keys: readonly string[]) {
    this.#world = world;
    this.#keys = keys;
    if (!isShared(world.plan.lockType)) for (const key of keys) this.#locks.set(key, new LockTrace(world, key));
  }

  get traces(): readonly (readonly TraceEvent[])[] {
    return [...this.#locks.values()].map(({ events }) => events).filter(({ length }) => length > 0);
  }

  executing(sentAt: number): void {
    this.#sentAt = sentAt;
  }

  /** After a script of the process. `asking`: of a shared lock, the owner that it was sent for. */
  executed(host: Host | undefined, isForced: boolean, asking: string | undefined): void {
    if (host === undefined) return;
    if (isShared(this.#world.plan.lockType)) {
      for (const key of this.#keys)
        for (const { member } of membersOf(this.#world.server, lockName(key))) this.#begin(key, member);
    }
    for (const lock of this.#locks.values()) lock.executed(host, this.#sentAt, isForced, asking);
  }

  check(open: Iterable<OpenLease>): void {
    for (const { key, kind, lease } of open) if (kind !== undefined) this.#begin(key, `${kind}:${lease.owner}`);
    for (const lock of this.#locks.values()) lock.check(open);
  }

  /** A lease of a shared lock is traced as soon as Redis or a process has it. */
  #begin(key: string, member: string): void {
    const id = `${key} ${member}`;
    if (!this.#locks.has(id)) this.#locks.set(id, new LockTrace(this.#world, key, member));
  }
}
