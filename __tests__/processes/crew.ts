import { type ChildProcess, fork } from 'node:child_process';
import { on, once } from 'node:events';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import type { RedisClientOptions } from 'redis';
import { realRedis } from '../support/redis';
import type { Job, Report } from './worker';

const children = new Set<ChildProcess>();

// Not left to the tests, which may fail before they come to it: a child keeps Jest alive.
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** One worker process, seen from the test. It lives for no longer than the test does. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #reports: AsyncIterableIterator<unknown>;
  readonly #exited: Promise<unknown[]>;

  static async start(): Promise<Worker> {
    const worker = new Worker();
    await worker.#next('ready');
    return worker;
  }

  static startAll(size: number): Promise<Worker[]> {
    return Promise.all(Array.from({ length: size }, () => Worker.start()));
  }

  private constructor() {
    this.#child = fork(join(__dirname, 'worker.ts'), {
      execArgv: ['-r', require.resolve('esbuild-register')],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    children.add(this.#child);
    this.#exited = once(this.#child, 'exit');
    this.#reports = on(this.#child, 'message', { close: ['exit', 'disconnect'] });
  }

  /** Gives it its job; resolves when it is on it. */
  async begin(job: Omit<Job, 'redis'>, redis: RedisClientOptions | undefined = realRedis): Promise<void> {
    this.#child.send({ redis, ...job });
    await this.#next('working');
  }

  /** What went wrong, when it has done its job. */
  async done(): Promise<readonly string[]> {
    const report = await this.#next('done');
    return report.state === 'done' ? report.violations : [];
  }

  /** SIGKILL; resolves when it is dead. Rejects when it had ended before, as it does when something went wrong. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null) throw new Error(`The worker had ended before, with ${this.#child.exitCode}`);
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Its exit code, when it has ended by itself. */
  async ended(): Promise<unknown> {
    const [code] = await this.#exited;
    return code;
  }

  async #next(state: Report['state']): Promise<Report> {
    for (;;) {
      const { value, done } = await this.#reports.next();
      if (done) throw new Error(`The worker ended before it was ${state}: ${this.#child.exitCode}`);
      const [report] = value as [Report];
      if (report.state === state) return report;
    }
  }
}
