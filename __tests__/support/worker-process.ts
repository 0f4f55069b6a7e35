import { type ChildProcess, fork, type Serializable } from 'node:child_process';
import { on, once } from 'node:events';
import { afterEach } from '@jest/globals';
import { compiled } from './compiled';

const children = new Set<ChildProcess>();

// A failing test may not reach its own cleanup, and a child process keeps Jest alive.
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** A worker process of one test, which reports its state. It is killed at the end of the test. */
export class WorkerProcess<Report extends { readonly state: string }> {
  protected readonly child: ChildProcess;
  protected readonly exited: Promise<unknown[]>;
  readonly #reports: AsyncIterableIterator<unknown>;

  protected constructor(script: string) {
    const program = script.endsWith('.ts') ? compiled(script) : script;
    this.child = fork(program, { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    children.add(this.child);
    this.exited = once(this.child, 'exit');
    this.#reports = on(this.child, 'message', { close: ['exit', 'disconnect'] });
  }

  /** Sends the job; resolves when the worker has started it. */
  protected async assign(job: object): Promise<void> {
    this.child.send(job as Serializable);
    await this.next('working');
  }

  /** The next report of this state; other reports before it are skipped. */
  async next<State extends Report['state']>(state: State): Promise<Extract<Report, { state: State }>> {
    for (;;) {
      const { value, done } = await this.#reports.next();
      if (done) throw new Error(`The worker ended before it was ${state}: ${this.child.exitCode}`);
      const [report] = value as [Report];
      if (report.state === state) return report as Extract<Report, { state: State }>;
    }
  }

  /** Sends SIGKILL; resolves when the process has ended. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }
}
