import { type ChildProcess, fork } from 'node:child_process';
import { on, once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sum } from './report';
import type { Job, Report } from './worker';

const OVERTIME = 5_000; // ms after closing time in which started orders may finish
const NOTHING_YET: Report = { sold: 0, lastSaleAt: 0, refusedTooEarly: 0, closed: false };

/** The worker processes of a demo. */
export class WorkerPool {
  /** The latest report of each worker on the current run. */
  readonly #reports: Report[];
  readonly #workers: readonly ChildProcess[];
  readonly #death: Promise<never>;

  constructor(size: number, url: string, registryKey: string) {
    this.#reports = Array.from({ length: size }, () => NOTHING_YET);
    // In the environment because the URL may contain a password, and arguments are public. fork() passes execArgv on,
    // and with it the TypeScript loader.
    const env = { ...process.env, DEMO_REDIS_URL: url, DEMO_REGISTRY_KEY: registryKey };
    this.#workers = this.#reports.map(() => fork(join(__dirname, 'worker.ts'), { env }));
    this.#death = Promise.race(this.#workers.map(deathOf));
    this.#death.catch(() => {}); // after stop() nothing awaits it
  }

  get soldByWorker(): number[] {
    return this.#reports.map(({ sold }) => sold);
  }

  get sold(): number {
    return sum(this.soldByWorker);
  }

  /** Orders that were refused although a piece was left. */
  get refusedTooEarly(): number {
    return sum(this.#reports.map(({ refusedTooEarly }) => refusedTooEarly));
  }

  /** When the last order was finished, in ms since the run began. */
  get lastSaleAt(): number {
    return Math.max(...this.#reports.map(({ lastSaleAt }) => lastSaleAt));
  }

  async ready(): Promise<void> {
    await Promise.race([Promise.all(this.#workers.map((worker) => once(worker, 'message'))), this.#death]);
  }

  /** Resolves when every worker has closed its shop. */
  async sell(job: Job): Promise<void> {
    this.#reports.fill(NOTHING_YET);
    const late = sleep(job.closingTime + OVERTIME, undefined, { ref: false }).then(() => {
      throw new Error('The workers did not stop at closing time.');
    });
    const closed = Promise.all(this.#workers.map((worker, index) => this.#follow(worker, index, job)));
    await Promise.race([closed, this.#death, late]);
  }

  stop(): void {
    for (const worker of this.#workers) worker.kill();
  }

  async #follow(worker: ChildProcess, index: number, job: Job): Promise<void> {
    worker.send(job, () => {}); // an error means that it died, which #death reports
    for await (const [message] of on(worker, 'message')) {
      const report = message as Report;
      this.#reports[index] = report;
      if (report.closed) return;
    }
  }
}

async function deathOf(worker: ChildProcess, index: number): Promise<never> {
  const [code, signal] = await once(worker, 'exit');
  const cause = signal ?? `exit code ${code}`;
  throw new Error(`Worker ${index + 1} died (${cause}). Its keys in Redis expire.`);
}
