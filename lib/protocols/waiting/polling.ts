import { NOT_GRANTED, type NotGranted, type Refusal } from '../../core/protocol';
import type { Wait } from '../../core/wait';
import type { Pollers } from '../pollers';
import { pauseBeforeNextAttempt } from './pause';
import type { Waiting } from './waiting';

/**
 * Spring's SPIN_LOCK: while another process holds the key, makes another attempt after `idleBetweenTries`, or sooner
 * while pollers are seen. Works with every Redis.
 */
export class Polling implements Waiting {
  readonly isSubscribed = false;
  readonly hints = 0;
  readonly hintedAt = 0;
  readonly ownListeners = 0;
  readonly isActive = false;
  readonly #idleBetweenTries: number;
  readonly #pollers: Pollers | undefined;

  /** In ms. */
  constructor(idleBetweenTries: number, pollers: Pollers | undefined) {
    this.#idleBetweenTries = idleBetweenTries;
    this.#pollers = pollers;
  }

  async wait(refusal: Refusal, wait: Wait): Promise<NotGranted> {
    const interval = this.#pollers?.pollingInterval(this.#idleBetweenTries) ?? this.#idleBetweenTries;
    await wait.sleep(pauseBeforeNextAttempt(interval, refusal, wait.remaining));
    return NOT_GRANTED;
  }

  expectEcho(): void {}

  onRelease(): () => void {
    return () => undefined;
  }
}
