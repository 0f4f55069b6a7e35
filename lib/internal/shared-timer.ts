import { clock } from './clock';
import { WakeTimer } from './wake-timer';

/** ms; calls that are due within this time are made together. */
export const TOGETHER = 20;

/**
 * One timer for many calls. Those that are due at about the same time are made together, so that what they send goes to
 * Redis together. Each with a timer of its own, it would go one by one.
 */
export class SharedTimer {
  readonly #due = new Map<() => void, number>();
  readonly #timer: WakeTimer;

  constructor(keepsProcessAlive = true) {
    this.#timer = new WakeTimer(() => this.#tick(), keepsProcessAlive);
  }

  /**
   * Calls back once, at this time on the monotonic clock at the latest, and up to `TOGETHER` ms before. A later time
   * never replaces an earlier one.
   */
  schedule(call: () => void, at: number): void {
    if (at >= (this.#due.get(call) ?? Number.POSITIVE_INFINITY)) return;
    this.#due.set(call, at);
    this.#timer.by(at);
  }

  /** Without calls to make, the timer does not keep the process alive. The next one may come soon. */
  cancel(call: () => void): void {
    if (this.#due.delete(call) && this.#due.size === 0) this.#timer.rest();
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#due.clear();
    this.#timer.cancel();
  }

  #tick(): void {
    const until = clock.now() + TOGETHER;
    const due: (() => void)[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const [call, at] of this.#due) {
      if (at > until) next = Math.min(next, at);
      else due.push(call);
    }
    for (const call of due) {
      // A call before it may have cancelled this one.
      if (this.#due.delete(call)) call();
    }
    this.#timer.by(next);
  }
}
