import { clock, MAX_DELAY } from './clock';

/** One timer for many times: it fires at the earliest that was asked for. */
export class WakeTimer {
  readonly #onWake: () => void;
  readonly #keepsProcessAlive: boolean;
  #timer: NodeJS.Timeout | undefined;
  /** On the monotonic clock. */
  #at = Number.POSITIVE_INFINITY;
  #isResting = false;

  constructor(onWake: () => void, keepsProcessAlive: boolean) {
    this.#onWake = onWake;
    this.#keepsProcessAlive = keepsProcessAlive;
  }

  /** Fires at this time at the latest, or earlier: after `MAX_DELAY`, or by an earlier call. `Infinity`: not for this. */
  by(time: number): void {
    if (this.#isResting) this.#resume();
    if (time >= this.#at) return;
    clock.clearTimeout(this.#timer);
    this.#at = time;
    this.#timer = clock.setTimeout(() => this.#fire(), Math.max(1, Math.min(time - clock.now(), MAX_DELAY)));
    if (!this.#keepsProcessAlive) this.#timer.unref?.();
  }

  /**
   * Nothing is to be done until the next call of `by`, which may come soon. Then this costs less than `cancel`: the timer
   * may fire for nothing, but does not keep the process alive.
   */
  rest(): void {
    this.#isResting = true;
    if (this.#keepsProcessAlive) this.#timer?.unref?.();
  }

  cancel(): void {
    clock.clearTimeout(this.#timer);
    this.#at = Number.POSITIVE_INFINITY;
  }

  #resume(): void {
    this.#isResting = false;
    // A timer that is overdue may never fire: it was set on a clock that an application's tests have replaced since.
    if (this.#at < clock.now()) this.cancel();
    else if (this.#keepsProcessAlive) this.#timer?.ref?.();
  }

  #fire(): void {
    this.#at = Number.POSITIVE_INFINITY;
    this.#onWake();
  }
}
