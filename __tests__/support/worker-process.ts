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

type AnyReport = { readonly state: string };

/** A worker process of one test: a program that calls `serve`. It is killed at the end of the test. */
export class WorkerProcess<Job extends object, Report extends AnyReport> {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown[]>;
  readonly #reports: AsyncIterableIterator<unknown>;

  static async start<Job extends object, Report extends AnyReport>(program: string) {
    const worker = new WorkerProcess<Job, Report>(program);
    await worker.#next('ready');
    return worker;
  }

  private constructor(program: string) {
    this.#child = fork(compiled(program), { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    children.add(this.#child);
    this.#exited = once(this.#child, 'exit');
    this.#reports = on(this.#child, 'message', { close: ['exit', 'disconnect'] });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Sends a job; resolves when the worker has started it. */
  async begin(job: Job): Promise<void> {
    this.send(job);
    await this.#next('working');
  }

  /** Sends what the job waits for. */
  send(message: Serializable): void {
    this.#child.send(message);
  }

  /** The next report of this state; other reports before it are skipped. */
  next<State extends Report['state']>(state: State): Promise<Extract<Report, { state: State }>> {
    return this.#next(state) as Promise<Extract<Report, { state: State }>>;
  }

  async #next(state: string): Promise<AnyReport> {
    for (;;) {
      const { value, done } = await this.#reports.next();
      if (done) throw new Error(`The worker ended before it was ${state}: ${this.#child.exitCode}`);
      const [report] = value as [AnyReport];
      if (report.state === state) return report;
    }
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** Sends SIGKILL; resolves when the process has ended. Rejects when it had ended before. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null) throw new Error(`The worker had ended before, with ${this.#child.exitCode}`);
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** The exit code, when the process has ended by itself. */
  async ended(): Promise<unknown> {
    const [code] = await this.#exited;
    return code;
  }
}
