import { NOT_GRANTED, type NotGranted, type Refusal } from '../../core/protocol';
import type { Wait } from '../../core/wait';
import { clock } from '../../internal/clock';
import type { Proof } from '../../redis/proof';
import type { Subscriber } from '../../redis/subscriber';
import type { Subscription } from '../../redis/subscription';
import type { Pollers } from './shared-with-pollers';
import type { WantedMark } from './wanted';

/** A waiter polls after this many idle intervals at the latest: Spring's SPIN_LOCK does not publish its releases. */
export const LONGEST_SLEEP = 10;

/**
 * ms; a process whose round trip is longer hardly ever meets a free lock, if others that are near wait for it too. It needs
 * a head start of this many round trips: one for the message and the attempt, and some of the next one for what may vary.
 */
const NEAR = 2;
const FAR_HEAD_START = 1.5;

/** How a lock is waited for: its name and channels, and what a message says. */
export interface Waited {
  readonly lock: string;
  readonly channels: readonly string[];
  meaningOf(message: string): Meaning;
  /** The mark by which a busy process finds this one; `undefined`: it finds it otherwise. */
  readonly mark?: WantedMark | undefined;
}

/** What a message on a lock's channels is about, if it is about this lock. */
export type Meaning = 'release' | 'left to pollers' | undefined;

/**
 * How a waiter learns that a lock may be free. Releases are published on channels, and a waiter sleeps until then. A
 * message is only a hint, and may be lost: so a waiter also polls after `LONGEST_SLEEP` intervals, and every
 * `idleBetweenTries` while it is not subscribed. Without a subscriber it always polls, as Spring's SPIN_LOCK does: that
 * works with every Redis. One object for each lock.
 */
export class Waiting {
  readonly #waited: Waited;
  readonly #subscriber: Subscriber | undefined;
  readonly #idleBetweenTries: number;
  readonly #pollers: Pollers | undefined;
  readonly #onRelease: () => void;
  #subscription: Subscription | undefined;
  /** How many releases it was notified of, or may have missed. It only grows. */
  hints = 0;
  /** When that was last, on the monotonic clock. */
  hintedAt = Number.NEGATIVE_INFINITY;
  /** ms; the shortest one of this wait, or twice that of the last one: others are longer where this process is busy. */
  #roundTrip = Number.POSITIVE_INFINITY;
  /** What was known after the last refusal. */
  #last: { readonly holder: string | undefined; readonly hints: number; readonly isDeaf: boolean } | undefined;

  /** `onRelease` is called for each message about a release, also about one of this process. */
  constructor(
    waited: Waited,
    subscriber: Subscriber | undefined,
    idleBetweenTries: number,
    pollers?: Pollers,
    onRelease: () => void = () => undefined,
  ) {
    this.#waited = waited;
    this.#subscriber = subscriber;
    this.#idleBetweenTries = idleBetweenTries;
    this.#pollers = pollers;
    this.#onRelease = onRelease;
  }

  get isSubscribed(): boolean {
    return this.#subscription?.isOpen ?? false;
  }

  /** Listeners that a release is published to, and that are certainly those of this process. */
  get ownListeners(): number {
    return this.isSubscribed && this.#subscriber?.isCounted ? this.#waited.channels.length : 0;
  }

  /** ms of head start that others give this process by now. */
  get headStart(): number {
    return this.#waited.mark?.headStart ?? 0;
  }

  /** This process has the lock: what follows is another wait. */
  acquired(): void {
    this.#waited.mark?.acquired();
    this.#roundTrip *= 2;
  }

  /** The waiting caller makes an attempt now, as after a message. */
  wake(): void {
    this.#subscription?.wake();
  }

  /** Calls back at every notification of a release. Returns the function that stops it. */
  onRelease(listener: () => void): () => void {
    return this.#subscription?.onWake(listener) ?? (() => undefined);
  }

  /**
   * After a refusal: resolves when it is time for another attempt, or the wait is over. `idleBetweenTries` in ms.
   * `holder`: who has the lock, where one owner has it at a time; `undefined`: it may change without a message.
   */
  async wait(
    refusal: Refusal,
    wait: Wait,
    idleBetweenTries = this.#idleBetweenTries,
    holder?: string,
  ): Promise<NotGranted> {
    this.#subscribe();
    const subscription = this.#subscription;
    const wasSubscribed = this.isSubscribed && refusal.hintsBefore !== undefined;
    const proof = subscription && this.#proof;
    const areHeard = wasSubscribed && !this.#missesMessages(holder) && proof?.isDeaf !== true;
    const usual = areHeard ? idleBetweenTries * LONGEST_SLEEP : idleBetweenTries;
    const longest = this.#pollers?.pollingInterval(usual) ?? usual;
    const pause = pauseBeforeNextAttempt(longest, refusal, wait.remaining);
    const { mark } = this.#waited;
    // Messages that come by way of another server come late: so others do not go on before this process has tried.
    const isCounted = areHeard && this.#subscriber?.isElsewhere !== true;
    this.#roundTrip = Math.min(this.#roundTrip, Math.ceil(refusal.roundTrip));
    const forMessageAndAttempt = this.#roundTrip > NEAR ? FAR_HEAD_START * this.#roundTrip : 0;
    mark?.begin(isCounted ? Math.min(forMessageAndAttempt, idleBetweenTries) : idleBetweenTries);
    subscription?.join();
    proof?.join();
    try {
      if (subscription === undefined) await wait.sleep(pause);
      // Messages sent before the subscription opened are lost, so attempt again once it is open.
      else if (wasSubscribed ? this.hints === refusal.hintsBefore : !subscription.isOpen) {
        await wait.suspend<void>(pause, (resume) => subscription.onWake(resume));
      }
    } finally {
      proof?.leave();
      subscription?.leave();
      mark?.end();
    }
    return NOT_GRANTED;
  }

  /** For callers that wait for several locks: calls back when it may be free. Returns what stops it. */
  watch(onHint: () => void): () => void {
    this.#subscribe();
    const subscription = this.#subscription;
    const stop = subscription?.onWake(onHint);
    subscription?.join();
    return () => {
      stop?.();
      subscription?.leave();
    };
  }

  /** ms between two attempts of such a caller. */
  get pollingInterval(): number {
    return this.isSubscribed && !this.isDeaf ? this.#idleBetweenTries * LONGEST_SLEEP : this.#idleBetweenTries;
  }

  get #proof(): Proof | undefined {
    return this.#subscriber?.proofOf(this.#waited.channels[0] as string, this.#waited.lock);
  }

  /** No message arrives, as far as is known. */
  get isDeaf(): boolean {
    const missed = this.#last?.hints === this.hints && this.#last.isDeaf;
    return missed || this.#proof?.isDeaf === true;
  }

  /** A waiter had its turn, and no message has said it: so none arrives, as far as is known until the next one. */
  missedItsTurn(): void {
    this.#last = { holder: undefined, hints: this.hints, isDeaf: true };
    this.#proof?.doubt();
  }

  /**
   * The holder has changed, and no message has said that the lock was free: none arrives, though the connection looks
   * alive. So until the next message this process polls as one without messages does. Else it would meet a lock that is
   * busy among others by chance only, every ten intervals.
   */
  #missesMessages(holder: string | undefined): boolean {
    const { hints } = this;
    const last = this.#last?.hints === hints ? this.#last : undefined;
    const isOther = last?.holder !== undefined && holder !== undefined && holder !== last.holder;
    const isDeaf = last?.isDeaf || isOther;
    if (isOther) this.#proof?.doubt();
    this.#last = { holder, hints, isDeaf };
    return isDeaf;
  }

  #subscribe(): void {
    if (this.#subscription?.isOver === false) return;
    this.#subscription = this.#subscriber?.subscribe(this.#waited.channels, (message) => this.#received(message));
    this.#subscription?.onWake(() => {
      this.hints++;
      this.hintedAt = clock.now();
    });
  }

  #received(message: string): void {
    const meaning = this.#waited.meaningOf(message);
    if (meaning === 'release') {
      this.#onRelease();
      this.#pollers?.announcedRelease();
      this.#subscription?.wake();
    } else if (meaning === 'left to pollers') {
      this.#pollers?.announced(clock.now());
    }
  }
}

/**
 * ms until the next attempt: `interval`, or less when the holder's key ends before, but at least 1. The last attempt of
 * a wait is made a little before its end, so that it can still be answered. When there is no time left for one, the rest
 * is slept.
 */
function pauseBeforeNextAttempt(interval: number, { remaining, roundTrip }: Refusal, left: number): number {
  const pause = Math.max(1, Math.min(interval, remaining));
  // One slow reply must not put the last attempt off by more than an interval.
  const lastAttempt = left - (2 * Math.min(roundTrip, interval) + 1);
  return lastAttempt < 1 ? left : Math.min(pause, lastAttempt);
}
