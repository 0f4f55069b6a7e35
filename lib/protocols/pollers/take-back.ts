import { clock } from '../../internal/clock';

/** Waits for a local caller to take back a lock that was left to pollers without notifying waiters. */
export class TakeBack {
  #timer: NodeJS.Timeout | undefined;

  /** Calls `onLate` after `ms`, unless the lock was taken back by then. */
  start(ms: number, onLate: () => void): void {
    this.#timer = clock.setTimeout(() => {
      this.#timer = undefined;
      onLate();
    }, ms);
    this.#timer.unref?.();
  }

  /** An attempt was answered: the lock is taken, or its holder will publish its release. */
  done(): void {
    if (this.#timer === undefined) return;
    clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
