/** ms between two measurements. */
const EVERY = 2;

/** ms; shorter delays are normal for a timer. */
const LATE = 3;

/** A time in which a process did not run: the delay that a busy machine adds to a wait. */
export interface Stall {
  readonly at: number;
  readonly ms: number;
}

/** ms on the monotonic clock of the machine. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Records when this process did not run, or a repeated request was not answered. */
export class StallWatch {
  readonly stalls: Stall[] = [];
  #isOver = false;

  constructor(ask: () => Promise<unknown> = async () => undefined) {
    void this.#watch(ask);
  }

  stop(): void {
    this.#isOver = true;
  }

  async #watch(ask: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      const at = sharedNow();
      await Promise.all([ask(), new Promise((resolve) => setTimeout(resolve, EVERY))]);
      const ms = sharedNow() - at - EVERY;
      if (ms > LATE) this.stalls.push({ at, ms });
    }
  }
}

/** The sum of the stalls in the worst `span` ms: each delays the holder, and so all waiters. */
export function worstOf(stalls: readonly Stall[], span: number): number {
  return Math.max(
    0,
    ...stalls.map(({ at }) =>
      stalls.reduce((sum, stall) => (stall.at >= at && stall.at < at + span ? sum + stall.ms : sum), 0),
    ),
  );
}
