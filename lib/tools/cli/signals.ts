import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Command } from './child';

const SIGNALS = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/**
 * The signals to this process. There is one set of handlers from its first line until it ends: with the handlers of Node,
 * SIGUSR1 starts a debugger, and the others end the process, also while it holds a lock.
 */
export class Signals {
  /** The number of the first signal; 0: none has come. */
  number = 0;
  areHandled = true;
  readonly #stop = new AbortController();
  #command: Command | undefined;
  #witness: ChildProcess | undefined;
  #passing = Promise.resolve();
  /** Signals that a witness saw before their turn. */
  readonly #seen = new Set<NodeJS.Signals>();

  constructor() {
    for (const signal of SIGNALS) process.on(signal, this.#receive);
  }

  /** Aborted by a signal that comes before there is a command. */
  get beforeCommand(): AbortSignal {
    return this.#stop.signal;
  }

  /** The result of `work`. Rejects with the reason of a signal that comes before. */
  async unlessOne<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#stop;
    const stopped = signal.aborted ? Promise.resolve() : once(signal, 'abort');
    return Promise.race([stopped.then(() => Promise.reject(signal.reason)), work]);
  }

  /** From now on the command gets them, each once, in their order. */
  passOnTo(command: Command): void {
    this.#command = command;
    this.#witness = witness();
  }

  /** Leaves them to the system, and what came meanwhile too. */
  giveUp(): void {
    this.areHandled = false;
    for (const signal of SIGNALS) process.off(signal, this.#receive);
    if (this.number > 0) process.kill(process.pid, this.number);
  }

  readonly #receive = (signal: NodeJS.Signals): void => {
    this.number ||= constants.signals[signal];
    this.#command?.expect(signal);
    if (this.#command === undefined) this.#stop.abort(new Error(signal));
    else this.#passing = this.#passing.then(() => this.#passOn(signal));
  };

  /** Ctrl-C, and `kill` of a process group, reach the command too, if it is in this group. A signal to this process doesn't. */
  async #passOn(signal: NodeJS.Signals): Promise<void> {
    const last = this.#witness;
    this.#witness = witness();
    const ending = last === undefined ? null : await endOf(last);
    // Another signal to the group, which came at the same time, and whose turn is next.
    if (ending !== null && ending !== signal) this.#seen.add(ending);
    this.#command?.pass(signal, ending === signal || this.#seen.delete(signal));
  }
}

/**
 * A process of this process group that a signal to the group ends: the system does not tell Node who sent a signal, or
 * to whom.
 */
function witness(): ChildProcess | undefined {
  try {
    const cat = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
    cat.on('error', () => undefined);
    // There is none where the system has no file descriptors left.
    cat.stdin?.on('error', () => undefined);
    return cat;
  } catch {
    // Node throws some of the system's errors, and reports others by an event. Without it, every signal is passed on.
    return undefined;
  }
}

/** The signal that ended it. The system gives a signal to a whole group before any process of it runs on. */
function endOf(cat: ChildProcess): Promise<NodeJS.Signals | null> {
  return new Promise((resolve) => {
    if (cat.pid === undefined || cat.exitCode !== null || cat.signalCode !== null) return resolve(cat.signalCode);
    cat.on('exit', (_code, signal) => resolve(signal));
    cat.stdin?.end();
  });
}
