import type { AwakeClock } from '../awake-clock';
import { SETTLING_MARGIN } from '../settings';
import type { RecordFile } from './record-file';

interface Step {
  readonly what: string;
  readonly startedAt: number;
  dueAt: number;
  isReported: boolean;
}

/** The steps that have a bound in time: acquisitions, releases, `close`. One that is not over by its bound is a violation. */
export class PendingSteps {
  readonly #clock: AwakeClock;
  readonly #records: RecordFile;
  readonly #steps = new Set<Step>();

  constructor(clock: AwakeClock, records: RecordFile) {
    this.#clock = clock;
    this.#records = records;
  }

  /** Awaits the step. `within`: ms; `signal`: when it aborts, the step has to be over at once. */
  async bounded<T>(what: string, within: number, promise: Promise<T>, signal?: AbortSignal): Promise<T> {
    const startedAt = this.#clock.now();
    const step: Step = { what, startedAt, dueAt: startedAt + within + SETTLING_MARGIN, isReported: false };
    const onAbort = () => {
      step.dueAt = Math.min(step.dueAt, this.#clock.now() + SETTLING_MARGIN);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#steps.add(step);
    try {
      return await promise;
    } finally {
      this.#steps.delete(step);
      signal?.removeEventListener('abort', onAbort);
      this.#check(step);
    }
  }

  check(): void {
    for (const step of this.#steps) this.#check(step);
  }

  #check(step: Step): void {
    const now = this.#clock.now();
    if (step.isReported || now <= step.dueAt) return;
    step.isReported = true;
    const [allowed, took] = [step.dueAt - step.startedAt, now - step.startedAt].map(Math.round);
    this.#records.violation('not settled', `${step.what} is not settled after ${took} ms, ${allowed} were allowed`);
  }
}
