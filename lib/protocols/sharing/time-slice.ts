import type { Wait } from '../../acquire/wait';
import { clock } from '../../internal/clock';
import type { OwnRelease, Sharing } from './sharing';

/**
 * Sharing with processes that cannot be seen: they poll. At the end of its slice a process releases the lock and waits a
 * little longer than a polling interval: within one interval, every process that polls has tried.
 *
 * Releasing costs that pause in any case, so slices are long. Measured with 4 processes of 10 callers for 10 s: with
 * slices of 1 s a process was left without a turn now and then; with 400 ms each had 14 % of the turns at least.
 */
export class TimeSlice implements Sharing {
  readonly #slice: number;
  readonly #idleBetweenTries: number;
  #sliceEndsAt = 0;
  #standBackUntil = 0;

  /** In ms. */
  constructor(slice: number, idleBetweenTries: number) {
    this.#slice = slice;
    this.#idleBetweenTries = idleBetweenTries;
  }

  get yieldsToListeners(): boolean {
    return false;
  }

  get isActive(): boolean {
    return false;
  }

  acquired(sentAt: number): void {
    this.#sliceEndsAt = sentAt + this.#slice;
  }

  renewSlice(sentAt: number): void {
    this.acquired(sentAt);
  }

  isSliceOver(now: number): boolean {
    return now >= this.#sliceEndsAt;
  }

  released({ atSliceEnd }: OwnRelease): void {
    if (atSliceEnd) this.#standBackUntil = clock.now() + 1.1 * this.#idleBetweenTries;
  }

  standBack(wait: Wait): Promise<void> | undefined {
    const pause = this.#standBackUntil === 0 ? 0 : this.#standBackUntil - clock.now();
    return pause > 0 ? wait.sleep(Math.min(pause, wait.remaining / 2)) : undefined;
  }
}
