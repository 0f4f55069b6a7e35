import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AwakeClock, holdsWithin } from './awake-clock';
import type { Answer, AnswerTo, Command, WorkerSettings } from './messages';

/** ms in which a worker that has nothing left to do must have ended by itself. */
const ENDING = 5_000;
/** ms for what a worker does on command; each call inside has a tighter bound of its own. */
const ANSWERING = 40_000;

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** One worker process, seen from the soak. */
export class WorkerProcess {
  readonly settings: WorkerSettings;
  readonly #child: ChildProcess;
  readonly #clock: AwakeClock;
  readonly #exited: Promise<unknown>;
  #answer: Answer | undefined;

  static async start(bundle: string, settings: WorkerSettings, clock: AwakeClock): Promise<WorkerProcess> {
    const worker = new WorkerProcess(bundle, settings, clock);
    await worker.#answerTo('start');
    return worker;
  }

  private constructor(bundle: string, settings: WorkerSettings, clock: AwakeClock) {
    this.settings = settings;
    this.#clock = clock;
    this.#child = fork(bundle, {
      env: { ...process.env, NODE_NO_WARNINGS: '1', SOAK_WORKER: JSON.stringify(settings) },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#exited = once(this.#child, 'exit');
    running.add(this.#child);
    this.#child.once('exit', () => running.delete(this.#child));
    this.#child.on('error', () => {}); // a command to a process that has just been killed
    this.#child.on('message', (message: Answer) => {
      this.#answer = message;
    });
  }

  /** Sends a command and waits for its answer: one command at a time. */
  async ask<Asked extends Exclude<Command, { readonly do: 'block' }>>(command: Asked): Promise<AnswerTo<Asked['do']>> {
    this.#answer = undefined;
    this.#child.send(command);
    return this.#answerTo<Asked['do']>(command.do);
  }

  block(ms: number): void {
    this.#child.send({ do: 'block', ms } satisfies Command);
  }

  /** A shell stops and continues it, so that it is not left stopped when the soak is killed meanwhile. */
  async freeze(ms: number): Promise<void> {
    const script = 'kill -STOP "$1"; sleep "$2"; kill -CONT "$1"';
    const shell = spawn('/bin/sh', ['-c', script, 'sh', String(this.#child.pid), (ms / 1_000).toFixed(3)], {
      detached: true,
      stdio: 'ignore',
    });
    await once(shell, 'exit');
  }

  /** Kill -9; resolves when it is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** How it ended after `finish`; `undefined`: it did not end by itself. */
  async end(): Promise<string | undefined> {
    if (await holdsWithin(this.#clock, ENDING, () => this.#hasEnded)) return this.#howItEnded;
    await this.kill();
    return undefined;
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get #howItEnded(): string {
    return this.#child.signalCode ?? `exit code ${this.#child.exitCode}`;
  }

  async #answerTo<Done extends Answer['done']>(done: Done): Promise<AnswerTo<Done>> {
    const isAnswered = await holdsWithin(this.#clock, ANSWERING, () => {
      if (this.#answer?.done === done) return true;
      if (this.#hasEnded)
        throw new Error(`${this.settings.name} ended with ${this.#howItEnded} before it did "${done}"`);
      return false;
    });
    if (!isAnswered) throw new Error(`${this.settings.name} did not answer to "${done}" within ${ANSWERING} ms`);
    return this.#answer as AnswerTo<Done>;
  }
}
