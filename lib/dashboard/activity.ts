import type { Lease } from '../api/distributed-lock';
import type {
  AcquireMessage,
  HoldMessage,
  LockMessage,
  LostMessage,
  RenewedMessage,
  WarningMessage,
} from '../api/messages';
import { nameIn } from '../api/owner-name';
import {
  acquireChannel,
  holdChannel,
  lostChannel,
  renewedChannel,
  subscribeTo,
  warningChannel,
} from '../diagnostics/channels';
import { clock } from '../internal/clock';

/** A line of what changed lately. */
export interface ShownChange {
  /** As of `Date.now()`. */
  readonly at: number;
  readonly lock: string;
  readonly what: string;
  /** Who has the lock now, or had it; `null`: not known. */
  readonly by: string | null;
  readonly reason?: string | undefined;
}

/** Calls of one key. In ms. */
interface Calls {
  calls: number;
  waited: number;
  longest: number;
}

/** How many changes are kept. */
export const CHANGES = 100;
/** How many keys are counted at a time: more are left out. */
const COUNTED = 1_000;
/** How many keys and waits are shown. */
const SHOWN = 10;
/** ms that a count lasts, and once more as the one before. */
const LASTS = 60_000;

const WAITS_FOR = { none: 'Redis', local: 'this process', remote: 'another process' };

/** What the locks of this process do, by its diagnostics channels. What it keeps is bounded, but for what is held. */
export class Activity {
  readonly changes: ShownChange[] = [];
  /** What this process holds, by owner value: readers of a process share one. `at` on the monotonic clock. */
  readonly held = new Map<string, { readonly at: number; renewed: boolean; leases: number }>();
  /** The names of the registries that held locks. */
  readonly names = new Set<string>();
  readonly #waits = new Map<AcquireMessage, number>();
  #calls = new Map<string, Calls>();
  #before = new Map<string, Calls>();
  #countedSince = clock.now();
  /** Ends the subscriptions. */
  readonly stop: () => void;

  constructor() {
    this.stop = subscribeTo([
      [acquireChannel.start, (message: AcquireMessage) => this.#waits.set(message, clock.now())],
      [acquireChannel.asyncEnd, (message: AcquireMessage) => this.#acquired(message)],
      [holdChannel.start, (message: HoldMessage) => this.#began(message)],
      [holdChannel.asyncEnd, (message: HoldMessage) => this.#ended(message)],
      [lostChannel, (message: LostMessage) => this.note('lost', message, nameIn(message.owner), message.reason)],
      [renewedChannel, ({ owner }: RenewedMessage) => Object.assign(this.held.get(owner) ?? {}, { renewed: true })],
      [warningChannel, (message: WarningMessage) => this.#warned(message)],
    ]);
  }

  note(what: string, lock: string | Omit<LockMessage, 'lockType'>, by: string | undefined, reason?: string): void {
    const name = typeof lock === 'string' ? lock : nameOf(lock);
    this.changes.push({ at: Date.now(), lock: name, what, by: by ?? null, reason });
    if (this.changes.length > CHANGES) this.changes.shift();
  }

  /** The keys that were called most often, in the last one or two minutes. */
  hottest(): ({ readonly lock: string } & Calls)[] {
    const sums = new Map(this.#before);
    for (const [lock, calls] of this.#calls) sums.set(lock, add(sums.get(lock), calls));
    const all = [...sums].map(([lock, calls]) => ({ lock, ...calls }));
    return all.sort((a, b) => b.calls - a.calls || b.waited - a.waited).slice(0, SHOWN);
  }

  /** `since` in ms. In the order in which they began. */
  longestWaits(now = clock.now()) {
    const waits = [...this.#waits].slice(0, SHOWN);
    return waits.map(([message, at]) => {
      return { lock: nameOf(message), waitsFor: WAITS_FOR[message.contention], since: now - at };
    });
  }

  /** How many calls of this process wait for a lock. */
  waitingFor(lock: string): number {
    return [...this.#waits.keys()].filter((message) => nameOf(message) === lock).length;
  }

  #acquired(message: AcquireMessage): void {
    this.#waits.delete(message);
    const { isHandedOver, isReentry, outcome, result, waited = 0 } = message;
    if (isReentry) return;
    const { owner } = (result ?? {}) as { readonly owner?: string };
    const what = outcome !== 'acquired' ? outcome : isHandedOver ? 'handed over' : 'acquired';
    if (what !== undefined) this.note(what, message, owner === undefined ? undefined : nameIn(owner));
    const now = clock.now();
    if (now - this.#countedSince > LASTS) {
      this.#before = now - this.#countedSince > 2 * LASTS ? new Map() : this.#calls;
      this.#calls = new Map();
      this.#countedSince = now;
    }
    const name = nameOf(message);
    const known = this.#calls.get(name);
    if (known === undefined && this.#calls.size >= COUNTED) return;
    this.#calls.set(name, add(known, { calls: 1, waited, longest: waited }));
  }

  #began({ leases }: HoldMessage): void {
    for (const owner of ownersOf(leases)) {
      const one = this.held.get(owner) ?? { at: clock.now(), renewed: false, leases: 0 };
      one.leases++;
      this.held.set(owner, one);
      this.names.add(nameIn(owner) ?? owner);
    }
  }

  #ended({ leases }: HoldMessage): void {
    for (const owner of ownersOf(leases)) {
      const one = this.held.get(owner);
      if (one !== undefined && --one.leases === 0) this.held.delete(owner);
    }
  }

  #warned({ registryKey, warning: { code, key } }: WarningMessage): void {
    if (key !== undefined) this.note('warning', { registryKey, key }, undefined, code);
  }
}

function ownersOf(leases: HoldMessage['leases']): string[] {
  return (leases as readonly (Lease & { readonly owner: string })[]).map(({ owner }) => owner);
}

function add(known: Calls | undefined, { calls, longest, waited }: Calls): Calls {
  if (known === undefined) return { calls, longest, waited };
  return { calls: known.calls + calls, waited: known.waited + waited, longest: Math.max(known.longest, longest) };
}

function nameOf({ key, registryKey }: Omit<LockMessage, 'lockType'>): string {
  return registryKey === '' ? key : `${registryKey}:${key}`;
}
