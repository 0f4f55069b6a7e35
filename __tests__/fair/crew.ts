import { type ChildProcess, fork } from 'node:child_process';
import { on, once } from 'node:events';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
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
    await worker.next('ready');
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

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Gives it its job; resolves when it is on it. */
  async begin(job: Job): Promise<void> {
    this.#child.send(job);
    await this.next('working');
  }

  async next<State extends Report['state']>(state: State): Promise<Extract<Report, { state: State }>> {
    for (;;) {
      const { value, done } = await this.#reports.next();
      if (done) throw new Error(`The worker ended before it was ${state}: ${this.#child.exitCode}`);
      const [report] = value as [Report];
      if (report.state === state) return report as Extract<Report, { state: State }>;
    }
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** SIGKILL; resolves when it is dead. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}
