import type { Wait } from '../../core/wait';
import { clock } from '../../internal/clock';
import type { OwnRelease, Sharing } from './sharing';

/** ms; a timer may end this much early: Node counts it in whole ms, from the start of a turn of the event loop. */
const TIMER_EARLY = 2;

/** In ms. */
interface SliceSettings {
  readonly first: number;
  readonly longest: number;
  readonly idleBetweenTries: number;
}

/**
 * Sharing with processes that cannot be seen: they poll. At the end of its slice a process releases the lock and waits
 * a little longer than a polling interval: within one interval, every process that polls has tried.
 *
 * Releasing costs that pause in any case, so slices are long. Measured with 4 processes of 10 callers for 10 s: with
 * slices of 1 s a process was left without a turn now and then; with 400 ms each had 14 % of the turns at least. Longer
 * slices are only for a process that is alone, as far as it knows: each pause in which nobody took the lock doubles the
 * next slice. An attempt that is refused ends that.
 */
export class TimeSlice implements Sharing {
  readonly #settings: SliceSettings;
  /** Whole ms: fractions would cost 16 bytes more for each idle lock. */
  #slice: number;
  #sliceEndsAt = 0;
  #standBackUntil = 0;
  /** It was released at the end of a slice, and no attempt was refused since. */
  #isUncontested = false;

  constructor(settings: SliceSettings) {
    this.#settings = settings;
    this.#slice = settings.first;
  }

  get yieldsToListeners(): boolean {
    return false;
  }

  get isActive(): boolean {
    return false;
  }

  acquired(sentAt: number): void {
    const { first, longest } = this.#settings;
    const sincePause = sentAt - this.#standBackUntil;
    // Without a whole pause before it, or long after one, nothing is known of others.
    const isLonger = this.#isUncontested && sincePause >= -TIMER_EARLY && sincePause < first;
    this.#slice = isLonger ? Math.min(2 * this.#slice, longest) : first;
    this.#isUncontested = false;
    this.renewSlice(sentAt);
  }

  refused(): void {
    this.#isUncontested = false;
  }

  renewSlice(sentAt: number): void {
    this.#sliceEndsAt = Math.ceil(sentAt + this.#slice);
  }

  isSliceOver(now: number): boolean {
    return now >= this.#sliceEndsAt;
  }

  released({ atSliceEnd }: OwnRelease): void {
    if (!atSliceEnd) return;
    this.#standBackUntil = Math.ceil(clock.now() + 1.1 * this.#settings.idleBetweenTries);
    this.#isUncontested = true;
  }

  standBack(wait: Wait): Promise<void> | undefined {
    return wait.standBack(this.#standBackUntil === 0 ? 0 : this.#standBackUntil - clock.now());
  }
}
