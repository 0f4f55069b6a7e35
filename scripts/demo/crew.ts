import { type ChildProcess, fork } from 'node:child_process';
import { on, once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sum } from './report';
import type { Job, Report } from './worker';

const OVERTIME = 5_000; // ms that the orders under way at closing time may take

/** The worker processes, seen from the demo. */
export class Crew {
  /** The orders of the current run, one number for each worker, while it runs too. */
  readonly soldByWorker: number[];
  /** Those of them that were refused although a piece was left, likewise. */
  readonly #refusedTooEarlyByWorker: number[];
  readonly #workers: readonly ChildProcess[];
  readonly #death: Promise<never>;

  constructor(size: number, url: string, registryKey: string) {
    this.soldByWorker = Array.from({ length: size }, () => 0);
    this.#refusedTooEarlyByWorker = Array.from({ length: size }, () => 0);
    // In the environment, for the URL may hold a password and arguments are public. fork() hands on execArgv, and with
    // it the loader for TypeScript.
    const env = { ...process.env, DEMO_REDIS_URL: url, DEMO_REGISTRY_KEY: registryKey };
    this.#workers = this.soldByWorker.map(() => fork(join(__dirname, 'worker.ts'), { env }));
    this.#death = Promise.race(this.#workers.map(deathOf));
    this.#death.catch(() => {}); // after dismiss() nobody is interested
  }

  get sold(): number {
    return sum(this.soldByWorker);
  }

  get refusedTooEarly(): number {
    return sum(this.#refusedTooEarlyByWorker);
  }

  async ready(): Promise<void> {
    await Promise.race([Promise.all(this.#workers.map((worker) => once(worker, 'message'))), this.#death]);
  }

  /** Resolves when every worker has closed its shop. */
  async sell(job: Job): Promise<void> {
    this.soldByWorker.fill(0);
    this.#refusedTooEarlyByWorker.fill(0);
    const late = sleep(job.closingTime + OVERTIME, undefined, { ref: false }).then(() => {
      throw new Error('The workers did not stop at closing time.');
    });
    const closed = Promise.all(this.#workers.map((worker, index) => this.#follow(worker, index, job)));
    await Promise.race([closed, this.#death, late]);
  }

  dismiss(): void {
    for (const worker of this.#workers) worker.kill();
  }

  async #follow(worker: ChildProcess, index: number, job: Job): Promise<void> {
    worker.send(job, () => {}); // an error means that it is dead, which #death tells
    for await (const [message] of on(worker, 'message')) {
      const report = message as Report;
      this.soldByWorker[index] = report.sold;
      this.#refusedTooEarlyByWorker[index] = report.refusedTooEarly;
      if (report.closed) return;
    }
  }
}

async function deathOf(worker: ChildProcess, index: number): Promise<never> {
  const [code, signal] = await once(worker, 'exit');
  const cause = signal ?? `exit code ${code}`;
  throw new Error(`Worker ${index + 1} died (${cause}). Whatever it left in Redis expires by itself.`);
}
