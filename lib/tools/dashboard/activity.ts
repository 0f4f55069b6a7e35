import {
  acquireChannel,
  holdChannel,
  lostChannel,
  renewedChannel,
  subscribeTo,
  warningChannel,
} from '../../api/diagnostics';
import type { Lease } from '../../api/distributed-lock';
import type {
  AcquireMessage,
  HoldMessage,
  LockMessage,
  LostMessage,
  RenewedMessage,
  WarningMessage,
} from '../../api/messages';
import { holderOf, nameIn } from '../../api/owner-name';
import { clock } from '../../internal/clock';
import { processOf } from '../../kinds/fair/ticket';
import { lockPrefix } from '../../redis/names';
import { HoldTimes } from './hold-times';

/** A line of what changed lately. */
interface ShownChange {
  /** What `Date.now()` said. */
  readonly at: number;
  readonly lock: string;
  readonly what: string;
  /** Who has the lock now, or had it; `null`: not known. */
  readonly by: string | null;
  readonly reason?: string | undefined;
  /** How often within a second. */
  times: number;
}

type Named = Omit<LockMessage, 'lockType'>;

/** Calls of one key. In ms. */
interface Calls {
  calls: number;
  waited: number;
  longest: number;
}

interface Waits {
  callers: number;
  readonly waits: number;
  readonly waitsFor: string;
}

/** How many changes are kept, so that some are there of each lock. */
const CHANGES = 1_000;
/** How many of them are shown. */
export const SHOWN_CHANGES = 100;
/** How many keys are counted at a time: more are left out. As many registries are known. */
const COUNTED = 1_000;
/** How many keys are shown. */
const SHOWN = 10;
/** ms that a count lasts, and once more as the one before. */
const LASTS = 60_000;

const WAITS_FOR = { none: 'Redis', local: 'this process', remote: 'another process' };

/**
 * What the locks of this process do, by its diagnostics channels: those of one registryKey, or all. What it keeps is
 * bounded, but for what is held.
 */
export class Activity {
  /** What happens several times in a second is one event. */
  readonly changes = new Map<string, ShownChange>();
  readonly holdTimes = new HoldTimes();
  /** What this process holds, by owner value: readers of a process share one. `at` on the monotonic clock. */
  readonly held = new Map<string, { readonly at: number; renewed: boolean; leases: number }>();
  /** The ids of the registries that held locks last: several processes may have one name. */
  readonly #ids = new Set<string>();
  /** Whether the process has called a lock: a viewer never does. */
  wasCalled = false;
  readonly #waits = new Map<AcquireMessage, number>();
  /** The owner values of each section that has begun: a lease that could not be detached gets another one. */
  readonly #sections = new Map<HoldMessage, readonly string[]>();
  #calls = new Map<string, Calls>();
  #before = new Map<string, Calls>();
  #countedSince = clock.now();
  /** Ends the subscriptions. */
  readonly stop: () => void;

  constructor(registryKey = '') {
    const prefix = lockPrefix(registryKey);
    const shown =
      <T extends Partial<Named>>(listener: (message: T) => void) =>
      (message: T): void => {
        const { key = '', registryKey = '' } = message;
        if (nameOf({ key, registryKey }).startsWith(prefix)) listener(message);
      };
    this.stop = subscribeTo([
      [acquireChannel.start, shown((message: AcquireMessage) => this.#called(message))],
      [acquireChannel.asyncEnd, shown((message: AcquireMessage) => this.#acquired(message))],
      [holdChannel.start, shown((message: HoldMessage) => this.#began(message))],
      [holdChannel.asyncEnd, shown((message: HoldMessage) => this.#ended(message))],
      [lostChannel, shown((message: LostMessage) => this.note('lost', message, nameIn(message.owner), message.reason))],
      [renewedChannel, ({ owner }: RenewedMessage) => Object.assign(this.held.get(owner) ?? {}, { renewed: true })],
      [warningChannel, shown((message: WarningMessage) => this.#warned(message))],
    ]);
  }

  note(what: string, name: string | Named, by: string | undefined, reason?: string, at = Date.now()): void {
    const lock = typeof name === 'string' ? name : nameOf(name);
    const same = JSON.stringify([Math.floor(at / 1_000), lock, what, by, reason]);
    const known = this.changes.get(same);
    if (known !== undefined) known.times++;
    else this.changes.set(same, { at, lock, what, by: by ?? null, reason, times: 1 });
    if (this.changes.size > CHANGES) this.changes.delete(this.changes.keys().next().value as string);
  }

  /** How many calls of this process wait for each lock, for how many ms the first of them, and for whom. */
  waits(now = clock.now()): Map<string, Waits> {
    const waits = new Map<string, Waits>();
    // The oldest comes first.
    for (const [message, since] of this.#waits) {
      const known = waits.get(nameOf(message));
      if (known !== undefined) known.callers++;
      else waits.set(nameOf(message), { callers: 1, waits: now - since, waitsFor: WAITS_FOR[message.contention] });
    }
    return waits;
  }

  /** The keys that are waited for, the longest first, and those called most often, in the last one or two minutes. */
  busiest() {
    this.#forgetOld();
    const sums = new Map(this.#before);
    for (const [lock, calls] of this.#calls) sums.set(lock, add(sums.get(lock), calls));
    const waits = this.waits();
    const all = [...new Set([...waits.keys(), ...sums.keys()])].map((lock) => {
      const none = { calls: 0, waited: 0, longest: 0, callers: 0, waits: 0, waitsFor: '' };
      return { lock, ...none, ...sums.get(lock), ...waits.get(lock) };
    });
    return all.sort((a, b) => b.waits - a.waits || b.calls - a.calls || b.waited - a.waited).slice(0, SHOWN);
  }

  /** Whether the owner value is of a registry of this process. */
  isOfProcess(owner: string): boolean {
    return this.#ids.has(processOf(holderOf(owner)));
  }

  #called(message: AcquireMessage): void {
    this.wasCalled = true;
    this.#waits.set(message, clock.now());
  }

  #acquired(message: AcquireMessage): void {
    this.#waits.delete(message);
    const { isHandedOver, isReentry, outcome, result, waited = 0 } = message;
    if (isReentry) return;
    const { owner } = (result ?? {}) as { readonly owner?: string };
    const what = outcome !== 'acquired' ? outcome : isHandedOver ? 'passed on' : 'acquired';
    if (what !== undefined) this.note(what, message, owner === undefined ? undefined : nameIn(owner));
    this.#forgetOld();
    const name = nameOf(message);
    const known = this.#calls.get(name);
    if (known === undefined && this.#calls.size >= COUNTED) return;
    this.#calls.set(name, add(known, { calls: 1, waited, longest: waited }));
  }

  /** Begins another count when the one of now has lasted its time. */
  #forgetOld(): void {
    const age = clock.now() - this.#countedSince;
    if (age <= LASTS) return;
    this.#before = age > 2 * LASTS ? new Map() : this.#calls;
    this.#calls = new Map();
    this.#countedSince += age;
  }

  #began(message: HoldMessage): void {
    const owners = (message.leases as readonly (Lease & { readonly owner: string })[]).map(({ owner }) => owner);
    this.#sections.set(message, owners);
    for (const owner of owners) {
      const one = this.held.get(owner) ?? { at: clock.now(), renewed: false, leases: 0 };
      one.leases++;
      this.held.set(owner, one);
      const id = processOf(owner);
      this.#ids.delete(id);
      this.#ids.add(id);
      if (this.#ids.size > COUNTED) this.#ids.delete(this.#ids.keys().next().value as string);
    }
  }

  #ended(message: HoldMessage): void {
    const { held = 0, leases } = message;
    // Several keys have a name of their own.
    if (leases.length === 1) this.holdTimes.add(nameOf(message), held);
    const owners = this.#sections.get(message) ?? [];
    this.#sections.delete(message);
    for (const owner of owners) {
      const one = this.held.get(owner);
      if (one !== undefined && --one.leases === 0) this.held.delete(owner);
    }
  }

  #warned({ registryKey, warning: { code, key } }: WarningMessage): void {
    if (key !== undefined) this.note('warning', { registryKey, key }, undefined, code);
  }
}

function add(known: Calls | undefined, { calls, longest, waited }: Calls): Calls {
  if (known === undefined) return { calls, longest, waited };
  return { calls: known.calls + calls, waited: known.waited + waited, longest: Math.max(known.longest, longest) };
}

function nameOf({ key, registryKey }: Named): string {
  return lockPrefix(registryKey) + key;
}
