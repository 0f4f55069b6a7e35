/** ms between two ticks. */
const TICK = 10;
/** ms of one gap between ticks that count at most. */
const COUNTED = 15;

/** ms on CLOCK_MONOTONIC, which all processes of the machine share. */
export const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;

/**
 * Time that passes only while this process is running: a stopped process, a blocked event loop and a busy machine
 * hold it up. Bounds that are measured on it hold on a machine that is busy with other work.
 */
export class AwakeClock {
  #elapsed = 0;
  #tickedAt = performance.now();
  readonly #timer: NodeJS.Timeout;

  /** `onTick` gets the ms since the tick before. */
  constructor(onTick: (gap: number) => void = () => {}) {
    this.#timer = setInterval(() => onTick(this.#advance()), TICK);
  }

  now(): number {
    this.#advance();
    return this.#elapsed;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #advance(): number {
    const now = performance.now();
    const gap = now - this.#tickedAt;
    this.#elapsed += Math.min(gap, COUNTED);
    this.#tickedAt = now;
    return gap;
  }
}

/** Waits until the condition holds; false when `within` ms of the clock pass before it does. */
export async function holdsWithin(
  clock: AwakeClock,
  within: number,
  condition: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const giveUpAt = clock.now() + within;
  for (;;) {
    if (await condition()) return true;
    if (clock.now() > giveUpAt) return false;
    await new Promise((resolve) => setTimeout(resolve, TICK));
  }
}
