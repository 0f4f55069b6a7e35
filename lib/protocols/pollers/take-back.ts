import { clock } from '../../internal/clock';

/** Runs while this process leaves a lock free, and nobody was notified of it. */
export class TakeBack {
  #timer: NodeJS.Timeout | undefined;

  /** Calls `onLate` after `ms`, unless the lock was taken back by then. */
  within(ms: number, onLate: () => void): void {
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
