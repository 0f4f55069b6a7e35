import { clock, MAX_DELAY } from './clock';

/** One timer for many times: it fires at the earliest that was asked for. */
export class WakeTimer {
  readonly #onWake: () => void;
  readonly #keepsProcessAlive: boolean;
  #timer: NodeJS.Timeout | undefined;
  /** On the monotonic clock. */
  #at = Number.POSITIVE_INFINITY;

  constructor(onWake: () => void, keepsProcessAlive: boolean) {
    this.#onWake = onWake;
    this.#keepsProcessAlive = keepsProcessAlive;
  }

  /** Fires at this time at the latest, or earlier: after `MAX_DELAY`, or by an earlier call. `Infinity`: not for this. */
  by(time: number, now = clock.now()): void {
    if (this.#keepsProcessAlive) this.#timer?.ref?.();
    // A timer that is overdue may never fire: it was set on a clock that an application's tests have replaced since.
    const isOverdue = this.#at < now;
    if (time >= this.#at && !isOverdue) return;
    clock.clearTimeout(this.#timer);
    this.#at = isOverdue ? Math.min(time, now + 1) : time;
    this.#timer = clock.setTimeout(() => this.#fire(), Math.max(1, Math.min(Math.ceil(this.#at - now), MAX_DELAY)));
    if (!this.#keepsProcessAlive) this.#timer.unref?.();
  }

  /**
   * Nothing is to be done until the next call of `by`, which may come soon. Then this costs less than `cancel`: the timer
   * may fire for nothing, but does not keep the process alive.
   */
  rest(): void {
    this.#timer?.unref?.();
  }

  cancel(): void {
    clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#at = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.cancel();
    this.#onWake();
  }
}
