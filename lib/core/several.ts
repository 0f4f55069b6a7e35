import type { KindSettings } from '../api/options';
import { clock } from '../internal/clock';
import { type Linked, LinkedList } from '../internal/linked-list';
import { WakeTimer } from '../internal/timers';
import type { LockProtocol } from './protocol';

/** ms until a key that was refused is asked about again where no message says that it is free: twice as long each time. */
const FIRST_PAUSE = 3;

/** ms for which the calls of a process may take a key one after the other; and the pause in which others may have it. */
const STREAK = 50;
const PAUSE_FOR_LISTENERS = 10;

/** Where others poll, in their intervals. */
const POLLED_STREAK = 4;
const PAUSE_FOR_POLLERS = 1.1;

/** Each pause in which nobody took the key doubles the next streak, up to this many times its usual length. */
const LONGEST_STREAK = 4;

/** The callers of one lock in this process. */
interface SoughtLock {
  /** It is kept from `begin` to `end`. */
  begin(): void;
  end(): void;
  readonly isTaken: boolean;
  readonly services: { readonly settings: Pick<KindSettings, 'handOver' | 'idleBetweenTries'> };
  openProtocol(): LockProtocol;
}

/** A key that calls for several wait for, and what is known of it in this process. */
export class SoughtKey {
  readonly lock: SoughtLock;
  readonly protocol: LockProtocol;
  /** Calls that wait for it, perhaps for others too. */
  users = 0;
  /** It is not asked for until then, unless a message says that it may be free: others have it, or are to have it. */
  takenUntil = 0;
  #pause = FIRST_PAUSE;
  /** Since when calls of this process have taken it one after the other. */
  #streakSince: number | undefined;
  /** How long a streak is, as a multiple of its usual length. */
  #length = 1;
  /** It was left to others at the end of a streak, and no attempt was refused since. */
  #isUncontested = false;
  /** Ends `watch` of the protocol, where it has that. */
  readonly stop: (() => void) | undefined;

  constructor(lock: SoughtLock, onHint: () => void) {
    this.lock = lock;
    this.protocol = lock.openProtocol();
    this.stop = this.protocol.watch?.(() => {
      if (this.#streakSince === undefined) this.takenUntil = 0;
      onHint();
    });
  }

  granted(now: number): void {
    this.#pause = FIRST_PAUSE;
    this.takenUntil = 0;
    if (this.#streakSince !== undefined) return;
    this.#streakSince = now;
    this.#length = this.#isUncontested ? Math.min(2 * this.#length, LONGEST_STREAK) : 1;
    this.#isUncontested = false;
  }

  /** Redis has refused it. `hintsBefore`: how many releases were noticed when it was asked about. */
  refused(hintsBefore: number | undefined, now: number): void {
    this.#streakSince = undefined;
    this.#isUncontested = false;
    const { availability, hints, pollingInterval = 0 } = this.protocol;
    // It was released meanwhile.
    if (hints !== undefined && hints !== hintsBefore) return;
    const { remaining = pollingInterval } = availability.holderSaid(now) ?? {};
    const pause = hints === undefined ? Math.min(this.#pause, pollingInterval) : pollingInterval;
    this.#pause *= 2;
    this.takenUntil = now + Math.max(1, Math.min(pause, remaining));
  }

  /** A call of this process gives it back. */
  released(now: number): void {
    if (this.#streakSince === undefined) return;
    const { handOver, idleBetweenTries } = this.lock.services.settings;
    const isPolled = this.protocol.hints === undefined;
    const usual = isPolled ? Math.max(STREAK, POLLED_STREAK * idleBetweenTries) : STREAK;
    if (now - this.#streakSince < (handOver ?? usual * this.#length)) return;
    this.#isUncontested = true;
    this.takenUntil = now + (isPolled ? PAUSE_FOR_POLLERS * idleBetweenTries : PAUSE_FOR_LISTENERS);
  }

  /** Whether it may be free, as far as is known here. */
  mayBeFree(now: number): boolean {
    if (this.takenUntil > now) return false;
    if (this.takenUntil > 0) this.#streakSince = undefined;
    return !this.lock.isTaken;
  }
}

/** A call for several keys that has not got them yet. */
export interface CallForSeveral extends Linked<CallForSeveral> {
  /** Set while it waits for its keys: asks for them, before this function returns. */
  start: (() => void) | undefined;
  readonly sought: readonly SoughtKey[];
}

/**
 * The calls of a registry for several keys, in the order in which they came. Of those that hold nothing, the first whose keys
 * may all be free goes first.
 */
export class CallsForSeveral extends LinkedList<CallForSeveral> {
  readonly #keys = new Map<SoughtLock, SoughtKey>();
  readonly #timer = new WakeTimer(() => this.#look(), false);
  #isLooking = false;

  /** No call in this process has waited for longer for one of its keys. */
  isFirst(call: CallForSeveral): boolean {
    for (const older of this) {
      if (older === call) return true;
      if (older.sought.some((key) => call.sought.includes(key))) return false;
    }
    return false;
  }

  /** The key is waited for, until `leave`. */
  seek(lock: SoughtLock): SoughtKey {
    const key = this.#keys.get(lock) ?? new SoughtKey(lock, this.#lookSoon);
    this.#keys.set(lock, key);
    key.users++;
    lock.begin();
    return key;
  }

  leave(key: SoughtKey): void {
    if (--key.users === 0) {
      this.#keys.delete(key.lock);
      key.stop?.();
      if (this.#keys.size === 0) this.#timer.cancel();
    }
    key.lock.end();
  }

  /** Nobody in this process has its turn. */
  freed(): void {
    if (this.#keys.size > 0) this.#lookSoon();
  }

  /** A lease of it has ended, and nobody else waits for its turn. */
  released(lock: SoughtLock): void {
    this.#keys.get(lock)?.released(clock.now());
  }

  readonly #lookSoon = (): void => {
    if (this.#isLooking) return;
    this.#isLooking = true;
    // In a moment others may be free too.
    queueMicrotask(() => {
      this.#isLooking = false;
      this.#look();
    });
  };

  #look(): void {
    const now = clock.now();
    for (const call of this) {
      if (call.start !== undefined && call.sought.every((key) => key.mayBeFree(now))) call.start();
    }
    this.lookAgain(now);
  }

  /** Looks when it is time to ask about a key. */
  lookAgain(now: number): void {
    let next = Number.POSITIVE_INFINITY;
    for (const { takenUntil } of this.#keys.values()) if (takenUntil > now) next = Math.min(next, takenUntil);
    if (next !== Number.POSITIVE_INFINITY) this.#timer.by(next, now);
  }
}
