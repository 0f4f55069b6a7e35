import type { Wait } from '../../core/wait';
import { clock } from '../../internal/clock';
import type { Waiting } from '../waiting/waiting';
import type { OwnRelease, Sharing } from './sharing';

/** ms; the unit in which processes give precedence to each other is a measured round trip, within these limits. */
const LEAST_STEP = 2;
const LONGEST_STEP = 20;

/** ms; a process stands back for this long at most. */
const LONGEST_STAND_BACK = 200;

/** ms; after this time nothing of a release is remembered. */
const MEMORY = 1_000;

/**
 * Sharing with processes that listen for releases. At the end of its slice a process releases the lock if others
 * listen.
 *
 * PUBLISH always wakes listeners in the same order, and the releasing process itself could try before all of them.
 * Without a rule the same processes would win every race. After its own release, with n other listeners, a process
 * waits n + 1 steps. Each release that it notices takes one step off. It notices its own release too. So the process
 * whose last release is the oldest tries first.
 */
export class YieldToListeners implements Sharing {
  readonly #slice: number;
  /** Whole ms: fractions would cost 16 bytes more for each idle lock. */
  #sliceEndsAt = 0;
  #release: OwnRelease | undefined;

  /** `slice` in ms. */
  constructor(slice: number) {
    this.#slice = slice;
  }

  get yieldsToListeners(): boolean {
    return true;
  }

  get isActive(): boolean {
    return this.#lastRelease(clock.now()) !== undefined;
  }

  acquired(sentAt: number): void {
    this.renewSlice(sentAt);
  }

  renewSlice(sentAt: number): void {
    this.#sliceEndsAt = Math.ceil(sentAt + this.#slice);
  }

  isSliceOver(now: number): boolean {
    return now >= this.#sliceEndsAt;
  }

  released(release: OwnRelease): void {
    this.#release = release.others > 0 ? release : undefined;
  }

  standBack(wait: Wait, waiting: Waiting | undefined): Promise<void> | undefined {
    const pause = this.#pause(clock.now(), waiting);
    return pause > 0 ? this.#standBack(wait, waiting, pause) : undefined;
  }

  async #standBack(wait: Wait, waiting: Waiting | undefined, first: number): Promise<void> {
    const endsAt = clock.now() + LONGEST_STAND_BACK;
    let pause = first;
    while (pause > 0 && wait.remaining > 0) {
      const isHint = await wait.suspend<true>(Math.min(pause, wait.remaining / 2), (resume) =>
        waiting?.onRelease(() => resume(true)),
      );
      if (!isHint) return;
      // The pause begins again at each release that is noticed, with one step less.
      const now = clock.now();
      pause = Math.min(this.#pause(now, waiting), endsAt - now);
    }
  }

  /** ms for which others go first, from now on: counted from our own release, or the last one that was noticed. */
  #pause(now: number, waiting: Waiting | undefined): number {
    const release = this.#lastRelease(now);
    if (release === undefined) return 0;
    const ahead = release.others + 1 - ((waiting?.hints ?? 0) - release.hintsBefore);
    const step = Math.min(Math.max(LEAST_STEP, release.answeredAt - release.sentAt), LONGEST_STEP);
    const since = Math.max(release.answeredAt, waiting?.hintedAt ?? 0);
    return Math.min(ahead * step, LONGEST_STAND_BACK) - (now - since);
  }

  #lastRelease(now: number): OwnRelease | undefined {
    if (this.#release !== undefined && now - this.#release.sentAt >= MEMORY) this.#release = undefined;
    return this.#release;
  }
}
