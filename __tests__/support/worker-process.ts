import { type ChildProcess, fork, type Serializable } from 'node:child_process';
import { on, once } from 'node:events';
import { afterEach } from '@jest/globals';

const children = new Set<ChildProcess>();

// Not left to the tests, which may fail before they come to it: a child keeps Jest alive.
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** One worker process, seen from the test. It says what state it is in, and lives for no longer than the test does. */
export class WorkerProcess<Report extends { readonly state: string }> {
  protected readonly child: ChildProcess;
  protected readonly exited: Promise<unknown[]>;
  readonly #reports: AsyncIterableIterator<unknown>;

  protected constructor(script: string) {
    this.child = fork(script, {
      execArgv: ['-r', require.resolve('esbuild-register')],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    children.add(this.child);
    this.exited = once(this.child, 'exit');
    this.#reports = on(this.child, 'message', { close: ['exit', 'disconnect'] });
  }

  /** Gives it its job; resolves when it is on it. */
  protected async assign(job: object): Promise<void> {
    this.child.send(job as Serializable);
    await this.next('working');
  }

  /** Its report when it is in this state; those before it are passed over. */
  async next<State extends Report['state']>(state: State): Promise<Extract<Report, { state: State }>> {
    for (;;) {
      const { value, done } = await this.#reports.next();
      if (done) throw new Error(`The worker ended before it was ${state}: ${this.child.exitCode}`);
      const [report] = value as [Report];
      if (report.state === state) return report as Extract<Report, { state: State }>;
    }
  }

  /** SIGKILL; resolves when it is dead. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }
}
