/** ms for which others are known to poll after the last sign of it. */
const KNOWN_FOR = 60_000;

/** ms; what was seen or has changed within this time counts as now. */
const JUST_NOW = 1_000;

/** ms; one change of holders without a message may be a message that was lost. Two within this time are a sign. */
const TWO_CHANGES = 2_500;

/**
 * A renewal also prolongs a key, but by at least a quarter of its ttl: renewals come at a third, less the slack of the
 * watchdog. A gain below this part of the ttl is a new holder.
 */
const RENEWED_AFTER = 0.2;

/** ms; a waiter has polled at least once in this time, so a longer silence means that nobody waited. */
export const LONGEST_SILENCE = 1_500;

/** The holder's key as a refusal found it. */
interface HoldersKey {
  /** ms that it still had to live. */
  readonly remaining: number;
  /** Releases that had been noticed by then. */
  readonly hints: number;
}

/** This process waits for the lock. */
interface WaitForLock {
  readonly since: number;
  /** When it was last refused. */
  readonly refusedAt: number;
  /** `undefined`: the holder is no poller. */
  readonly key: HoldersKey | undefined;
}

/** How a wait of this process ended: with the lock. */
export interface EndOfWait {
  readonly refusedAt: number;
  /** Pollers had the lock meanwhile. */
  readonly wasPolled: boolean;
}

/**
 * The signs of pollers. There are two. Somebody took a lock that was left free while no listener was notified. Or a
 * waiter sees the holder change without a message.
 */
export class Signs {
  /** When a poller was last seen, by one of the two signs. */
  #seenAt = Number.NEGATIVE_INFINITY;
  #unusedPauses = Number.POSITIVE_INFINITY;
  /** When a holder last changed without a message: a single change is no sign yet. */
  #changedAt = Number.NEGATIVE_INFINITY;
  #wait: WaitForLock | undefined;

  /** Pollers were seen lately. */
  isKnown(now: number): boolean {
    return now - this.#seenAt < KNOWN_FOR;
  }

  /** Pollers were seen lately, or one holder has just changed without a message. */
  isSuspected(now: number): boolean {
    return this.isKnown(now) || now - this.#changedAt < JUST_NOW;
  }

  /** A poller was seen just now: it may take the lock over and over. */
  wasSeenJustNow(now: number): boolean {
    return now - this.#seenAt < JUST_NOW;
  }

  /** ms for which this process has waited for the lock; 0: it does not wait. */
  waitedFor(now: number): number {
    return this.#wait === undefined ? 0 : now - this.#wait.since;
  }

  /** Pauses that no poller used since one was last seen; `Infinity`: none was ever seen. */
  get unusedPauses(): number {
    return this.#unusedPauses;
  }

  /** A poller was seen. */
  seen(at: number): void {
    this.#seenAt = at;
    this.#unusedPauses = 0;
  }

  /** No poller took the lock in a pause. */
  pauseUnused(): void {
    this.#unusedPauses++;
  }

  /** An attempt was refused: the holder has this key, and may be a poller. */
  refused(at: number, key: HoldersKey): void {
    const last = this.#wait;
    const isSameWait = last?.key !== undefined && at - last.refusedAt < LONGEST_SILENCE;
    this.#wait = { since: isSameWait ? last.since : at, refusedAt: at, key };
    if (last?.key === undefined || !isSuccessor(key, last.key, at - last.refusedAt)) return;
    if (at - this.#changedAt < TWO_CHANGES) this.seen(at);
    this.#changedAt = at;
  }

  /** An attempt was refused: another process holds the lock, which is no poller. */
  refusedByListener(at: number): void {
    this.#wait = { since: this.#wait?.since ?? at, refusedAt: at, key: undefined };
  }

  /** The lock was left free by a message: that it has a new holder afterwards is no sign. */
  announced(): void {
    const wait = this.#wait;
    // No later key lives for longer than that.
    if (wait?.key !== undefined) this.#wait = { ...wait, key: { ...wait.key, remaining: Number.POSITIVE_INFINITY } };
  }

  /** This process has the lock. `undefined`: it did not wait. */
  granted(): EndOfWait | undefined {
    const wait = this.#wait;
    this.#wait = undefined;
    return wait && { refusedAt: wait.refusedAt, wasPolled: this.#seenAt >= wait.since };
  }
}

/**
 * Whether a key belongs to a new holder, which took the lock without a message. `later`: ms between the two refusals.
 */
function isSuccessor(key: HoldersKey, before: HoldersKey, later: number): boolean {
  const gained = key.remaining - before.remaining + later;
  return key.hints === before.hints && key.remaining > before.remaining && gained <= RENEWED_AFTER * key.remaining;
}
