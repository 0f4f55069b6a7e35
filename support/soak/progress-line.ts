import { SingleBar } from 'cli-progress';

/** How much of the time is over, on a terminal. */
export class ProgressLine {
  readonly #bar: SingleBar;
  readonly #timer: NodeJS.Timeout;

  constructor(ms: number) {
    const total = Math.ceil(ms / 1_000);
    this.#bar = new SingleBar({
      format: 'soak {bar} {value} of {total} s',
      stream: process.stderr,
      clearOnComplete: true,
    });
    this.#bar.start(total, 0);
    const startedAt = performance.now();
    const show = () => this.#bar.update(Math.min(total, Math.round((performance.now() - startedAt) / 1_000)));
    this.#timer = setInterval(show, 1_000);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#bar.stop();
  }
}
