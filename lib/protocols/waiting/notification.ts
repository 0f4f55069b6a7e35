import { NOT_GRANTED, type NotGranted, type Refusal } from '../../core/protocol';
import type { Wait } from '../../core/wait';
import { clock } from '../../internal/clock';
import type { LockNames } from '../../redis/names';
import type { Subscriber, Subscription } from '../../redis/subscriber';
import type { Pollers } from '../pollers';
import { pauseBeforeNextAttempt } from './pause';
import type { Waiting } from './waiting';

/** A waiter polls after this many idle intervals at the latest: Spring's SPIN_LOCK does not publish its releases. */
export const LONGEST_SLEEP = 10;

/** ms in which a process receives its own message. */
const ECHO = 1_000;

/** Where the releases of a lock are published. */
export interface ReleaseChannels {
  channels(names: LockNames): readonly string[];
  /** Whether a message on one of the channels is about a release of this lock. */
  isRelease(message: string, names: LockNames): boolean;
  /** Whether the message says that a process left the lock to pollers. */
  isLeftToPollers(message: string): boolean;
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
  /** `undefined`: nobody takes these locks by polling. */
  readonly #pollers: Pollers | undefined;
  readonly #onOthersRelease: () => void;
  #subscription: Subscription | undefined;
  /** Messages of this process that it will receive itself, if they are not lost. */
  #echoes = 0;
  #echoesUntil = 0;
  hints = 0;
  hintedAt = Number.NEGATIVE_INFINITY;

  constructor(
    names: LockNames,
    channels: ReleaseChannels,
    subscriber: Subscriber,
    idleBetweenTries: number,
    pollers?: Pollers,
    onOthersRelease: () => void = () => undefined,
  ) {
    this.#names = names;
    this.#channels = channels;
    this.#subscriber = subscriber;
    this.#idleBetweenTries = idleBetweenTries;
    this.#pollers = pollers;
    this.#onOthersRelease = onOthersRelease;
  }

  get isSubscribed(): boolean {
    return this.#subscription?.isOpen ?? false;
  }

  get ownListeners(): number {
    return this.#subscription?.isOpen ? this.#subscription.channels.length : 0;
  }

  expectEcho(sentAt: number): void {
    this.#echoes = this.ownListeners;
    this.#echoesUntil = sentAt + ECHO;
  }

  get isActive(): boolean {
    return this.#subscription !== undefined && !this.#subscription.isOver;
  }

  /** The waiting caller makes an attempt now, as after a message. */
  wake(): void {
    this.#subscription?.wake();
  }

  onRelease(listener: () => void): () => void {
    return this.#subscription?.onWake(listener) ?? (() => undefined);
  }

  async wait(refusal: Refusal, wait: Wait): Promise<NotGranted> {
    const idle = this.#idleBetweenTries;
    const subscription = this.#subscribe();
    if (subscription === undefined) {
      await wait.sleep(pauseBeforeNextAttempt(idle, refusal, wait.remaining));
      return NOT_GRANTED;
    }
    subscription.join();
    try {
      // Messages sent before the subscription opened are lost, so attempt again once it is open.
      const wasSubscribed = refusal.hintsBefore !== undefined;
      if (wasSubscribed ? this.hints === refusal.hintsBefore : !subscription.isOpen) {
        const usual = wasSubscribed ? idle * LONGEST_SLEEP : idle;
        const longest = this.#pollers?.pollingInterval(usual) ?? usual;
        const pause = pauseBeforeNextAttempt(longest, refusal, wait.remaining);
        await wait.suspend<void>(pause, (resume) => subscription.onWake(resume));
      }
    } finally {
      subscription.leave();
    }
    return NOT_GRANTED;
  }

  #noteRelease(): void {
    if (this.#echoes > 0 && clock.now() < this.#echoesUntil) this.#echoes--;
    else this.#onOthersRelease();
  }

  #subscribe(): Subscription | undefined {
    if (this.#subscription === undefined || this.#subscription.isOver) {
      const names = this.#names;
      this.#subscription = this.#subscriber.subscribe(this.#channels.channels(names), (message) => {
        if (this.#channels.isRelease(message, names)) {
          this.#noteRelease();
          this.#pollers?.announcedRelease();
          this.#subscription?.wake();
        } else if (this.#channels.isLeftToPollers(message)) {
          this.#pollers?.announced(clock.now());
        }
      });
      this.#subscription?.onWake(() => {
        this.hints++;
        this.hintedAt = clock.now();
      });
    }
    return this.#subscription;
  }
}
