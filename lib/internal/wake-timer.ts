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
  by(time: number): void {
    if (time >= this.#at) return;
    clock.clearTimeout(this.#timer);
    this.#at = time;
    this.#timer = clock.setTimeout(() => this.#fire(), Math.max(1, Math.min(time - clock.now(), MAX_DELAY)));
    if (!this.#keepsProcessAlive) this.#timer.unref?.();
  }

  cancel(): void {
    clock.clearTimeout(this.#timer);
    this.#at = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#at = Number.POSITIVE_INFINITY;
    this.#onWake();
  }
}
