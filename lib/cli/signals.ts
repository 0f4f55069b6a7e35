import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';

const SIGNALS = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/**
 * The signals to this process: one set of handlers from before the lock is acquired until it has been given back, so
 * that none of them ends this process while it holds the lock.
 */
export class Signals {
  /** Of the first one. */
  number = 0;
  readonly #stop = new AbortController();
  #command: ChildProcess | undefined;
  #witness: ChildProcess | undefined;
  #passing = Promise.resolve();
  /** That a witness saw before their turn. */
  readonly #seen = new Set<NodeJS.Signals>();

  constructor() {
    for (const signal of SIGNALS) process.on(signal, this.#receive);
  }

  /** Aborted by a signal that comes before there is a command. */
  get beforeCommand(): AbortSignal {
    return this.#stop.signal;
  }

  /** From now on the command gets them, each once, in their order. */
  passOnTo(command: ChildProcess): void {
    this.#command = command;
    this.#witness = witness();
  }

  close(): void {
    for (const signal of SIGNALS) process.off(signal, this.#receive);
    this.#witness?.stdin?.end();
  }

  readonly #receive = (signal: NodeJS.Signals): void => {
    this.number ||= constants.signals[signal];
    if (this.#command === undefined) this.#stop.abort(new Error(signal));
    else this.#passing = this.#passing.then(() => this.#passOn(signal));
  };

  /** Ctrl-C, and `kill` of a process group, reach the command too. A signal to this process alone does not. */
  async #passOn(signal: NodeJS.Signals): Promise<void> {
    const last = this.#witness;
    this.#witness = witness();
    const ending = last === undefined ? null : await endOf(last);
    // Another signal to the group, which came at the same time, and whose turn is next.
    if (ending !== null && ending !== signal) this.#seen.add(ending);
    if (ending !== signal && !this.#seen.delete(signal)) this.#command?.kill(signal);
  }
}

/**
 * A process of this process group that a signal to the group ends: the system does not tell Node who sent a signal, or
 * to whom.
 */
function witness(): ChildProcess {
  const cat = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  // Without it, every signal is passed on.
  cat.on('error', () => undefined);
  cat.stdin.on('error', () => undefined);
  return cat;
}

/** The signal that ended it. The system gives a signal to a whole group before any process of it runs on. */
function endOf(cat: ChildProcess): Promise<NodeJS.Signals | null> {
  return new Promise((resolve) => {
    if (cat.pid === undefined || cat.exitCode !== null || cat.signalCode !== null) return resolve(cat.signalCode);
    cat.on('exit', (_code, signal) => resolve(signal));
    cat.stdin?.end();
  });
}
