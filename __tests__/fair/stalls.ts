/** ms between two looks. */
const EVERY = 2;

/** Less than so many ms late is a timer's habit. */
const LATE = 3;

/** A time for which a process was not let run: what a busy machine adds to a wait. */
export interface Stall {
  readonly at: number;
  readonly ms: number;
}

/** ms on a clock that all processes of the machine share. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Notes when this process was not let run, or something that it asks again and again did not answer. */
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

/** What stalls add up to in the worst `span` ms: each holds up the one turn that everybody waits for. */
export function worstOf(stalls: readonly Stall[], span: number): number {
  return Math.max(
    0,
    ...stalls.map(({ at }) =>
      stalls.reduce((sum, stall) => (stall.at >= at && stall.at < at + span ? sum + stall.ms : sum), 0),
    ),
  );
}
