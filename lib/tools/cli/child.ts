import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../redis/failure';
import { complain, EXIT } from './output';
import { MESSAGES, ProcessTree } from './process-tree';

/** ms between two looks at what is left of a command. */
const LOOKS = 50;

/**
 * The command under a lock. When the lock is lost, or a signal is to end the command, all that it has started has to end
 * too: a shell ends at once, and the program that it has started works on.
 *
 * The command stays in the process group of redis-locks. In a group of its own it could not read from the terminal, and
 * Ctrl-Z would not stop it: only native code can hand a terminal over.
 */
export class Command {
  /** The exit code of the program, when it has ended: with all that it has started, where that is to end too. */
  readonly exitCode: Promise<number>;
  readonly #tree: ProcessTree;
  /** ms from SIGTERM, or the end of the command itself, to SIGKILL. */
  readonly #grace: number;
  /** All of it is to end. */
  #isEnding = false;
  #isOver = false;
  /** On the monotonic clock. */
  #killAt = Number.POSITIVE_INFINITY;
  #killing: NodeJS.Timeout | undefined;

  private constructor(child: ChildProcess, pid: number, mark: string, grace: number) {
    this.#tree = new ProcessTree(pid, mark);
    this.#grace = grace;
    this.exitCode = new Promise((resolve) => {
      child.on('exit', (code, signal) => resolve(this.#ended(code, signal)));
    });
  }

  /**
   * `environment`: an addition to that of this process; `undefined`: the command does not have it. Resolves to an exit
   * code if it fails.
   */
  static async start(
    [program = '', ...args]: readonly string[],
    environment: Readonly<Record<string, string | undefined>>,
    grace: number,
  ): Promise<Command | number> {
    try {
      // A name of its own: a `run` inside the command has the other names too.
      const mark = `LOCK_RUN_${randomBytes(8).toString('hex')}`;
      const env = { ...process.env, ...environment, [mark]: '1' };
      const child = spawn(program, args, { stdio: 'inherit', env });
      const { pid } = child;
      if (pid !== undefined) return new Command(child, pid, `${mark}=1`, grace);
      throw await new Promise((resolve) => child.on('error', resolve));
    } catch (error) {
      // Node throws some of the system's errors, and reports others by an event.
      complain(`${program} cannot be started: ${messageOf(error)}`);
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? EXIT.notFound : EXIT.cannotExecute;
    }
  }

  /** SIGTERM for all of it, and after the grace SIGKILL. */
  end(): void {
    this.#isEnding = true;
    this.#killAt = Math.min(this.#killAt, performance.now() + this.#grace);
    this.#tree.send('SIGTERM');
    this.#killing = setTimeout(() => this.#tree.send('SIGKILL'), this.#grace);
  }

  /** There is a signal to this process, which will be passed on. */
  expect(signal: NodeJS.Signals): void {
    this.#isEnding ||= !MESSAGES.includes(signal);
  }

  /** `isOfGroup`: the system has sent it to all processes of our group. */
  pass(signal: NodeJS.Signals, isOfGroup: boolean): void {
    if (!this.#isOver) this.#tree.send(signal, isOfGroup);
  }

  async #ended(code: number | null, signal: NodeJS.Signals | null): Promise<number> {
    this.#tree.isRootOver = true;
    // Somebody has ended the command alone.
    if (signal !== null && !this.#isEnding) this.end();
    if (this.#isEnding) await this.#rest();
    this.#isOver = true;
    clearTimeout(this.#killing);
    return code ?? EXIT.signal + constants.signals[signal ?? 'SIGKILL'];
  }

  async #rest(): Promise<void> {
    this.#killAt = Math.min(this.#killAt, performance.now() + this.#grace);
    while (this.#tree.members().length > 0) {
      if (performance.now() >= this.#killAt) this.#tree.send('SIGKILL');
      await sleep(LOOKS);
    }
  }
}
