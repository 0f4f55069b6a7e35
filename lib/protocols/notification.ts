import type { Wait } from '../acquire/wait';
import { clock } from '../internal/clock';
import type { LockNames } from '../redis/names';
import type { Subscriber } from '../redis/subscriber';
import type { Subscription } from '../redis/subscription';
import { pollingInterval, type Waiting } from './polling';
import { NOT_GRANTED, type NotGranted, type Refusal } from './protocol';

/** A waiter polls after this many idle intervals at the latest: a peer that spins does not publish its releases. */
export const LONGEST_SLEEP = 10;

/** Where the releases of a lock are published. */
export interface ReleaseChannels {
  channels(names: LockNames): readonly string[];
  /** Whether a message on one of the channels is about a release of this lock. */
  isRelease(message: string, names: LockNames): boolean;
}

/**
 * Waits for messages on channels: a release is published there, and a waiter sleeps until then. A message is only a
 * hint, and may be lost: so a waiter also polls after `LONGEST_SLEEP` intervals, and every interval while it is not
 * subscribed.
 */
export class Notification implements Waiting {
  readonly #names: LockNames;
  readonly #channels: ReleaseChannels;
  readonly #subscriber: Subscriber;
  readonly #idleBetweenTries: number;
  #subscription: Subscription | undefined;
  hints = 0;
  hintedAt = Number.NEGATIVE_INFINITY;

  constructor(names: LockNames, channels: ReleaseChannels, subscriber: Subscriber, idleBetweenTries: number) {
    this.#names = names;
    this.#channels = channels;
    this.#subscriber = subscriber;
    this.#idleBetweenTries = idleBetweenTries;
  }

  get isHearing(): boolean {
    return this.#subscription?.isOpen ?? false;
  }

  get ownListeners(): number {
    return this.#subscription?.isOpen ? this.#subscription.channels.length : 0;
  }

  get isActive(): boolean {
    return this.#subscription !== undefined && !this.#subscription.isOver;
  }

  onRelease(listener: () => void): () => void {
    return this.#subscription?.onWake(listener) ?? (() => undefined);
  }

  async wait(refusal: Refusal, wait: Wait): Promise<NotGranted> {
    const idle = this.#idleBetweenTries;
    const subscription = this.#subscribe();
    if (subscription === undefined) {
      await wait.sleep(pollingInterval(idle, refusal, wait.remaining));
      return NOT_GRANTED;
    }
    subscription.join();
    try {
      // Messages sent before the subscription opened are lost, so attempt again once it is open.
      const wasHearing = refusal.heard !== undefined;
      if (wasHearing ? this.hints === refusal.heard : !subscription.isOpen) {
        const longest = wasHearing ? idle * LONGEST_SLEEP : idle;
        const pause = pollingInterval(longest, refusal, wait.remaining);
        await wait.suspend<void>(pause, (resume) => subscription.onWake(resume));
      }
    } finally {
      subscription.leave();
    }
    return NOT_GRANTED;
  }

  #subscribe(): Subscription | undefined {
    if (this.#subscription === undefined || this.#subscription.isOver) {
      const names = this.#names;
      this.#subscription = this.#subscriber.subscribe(this.#channels.channels(names), (message) => {
        if (this.#channels.isRelease(message, names)) this.#subscription?.wake();
      });
      this.#subscription?.onWake(() => {
        this.hints++;
        this.hintedAt = clock.now();
      });
    }
    return this.#subscription;
  }
}
