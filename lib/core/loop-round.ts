import { clock } from '../internal/clock';

/** ms; while the callers of a process pass a hold on, the event loop makes a round after this time. */
const LOOP_ROUND = 5;

/** Since when the callers of a registry have passed holds on in this round of the event loop. */
export class LoopRound {
  #since: number | undefined;

  /** A hold is passed on now. Returns whether the event loop has to make a round first. */
  isDue(now: number): boolean {
    if (this.#since === undefined) {
      this.#since = now;
      void clock.immediate().then(() => (this.#since = undefined));
    }
    return now - this.#since >= LOOP_ROUND;
  }
}
