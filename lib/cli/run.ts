import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { DistributedLock, Lease, LockOptions } from '../api/distributed-lock';
import { LockLostError, LockTimeoutError } from '../api/errors';
import { holderOf, isKept, nameIn } from '../api/owner-name';
import { messageOf } from '../redis/failure';
import { RedisLockRegistry } from '../registry/redis-lock-registry';
import type { Arguments, Values } from './arguments';
import { delayOf, durationOf, keyOf, lockTypeOf, numberOf, registryKeyOf } from './arguments';
import { complain, EXIT, ExitError, usageError } from './output';
import { connectTo } from './servers';

/** ms after which `run` says that it waits. */
const SAID_AFTER = 1_000;

/** `redis-locks run KEY -- command args…` */
export async function run(args: Arguments): Promise<number> {
  const { values, rest = [] } = args;
  const key = keyOf(args);
  if (rest.length === 0) throw usageError('The command is missing: redis-locks run KEY -- COMMAND');
  assertOneOf(values, ['wait', 'no-wait']);
  assertOneOf(values, ['shared', 'exclusive', 'permits']);
  const waitTime = values['no-wait'] ? 0 : durationOf(values, 'wait', Number.POSITIVE_INFINITY);
  const times = {
    waitTime,
    ttl: durationOf(values, 'ttl', undefined),
    minHold: durationOf(values, 'min-hold', undefined),
  };
  const grace = delayOf(values, 'grace', 10_000);
  const permits = numberOf(values, 'permits', undefined, 1, 1_000_000);
  const notFree = numberOf(values, 'conflict-exit-code', EXIT.notFree, 0, 255);
  const lockType = lockTypeOf(values) ?? 'spin';
  // A token of the Redisson types is a key that is never deleted.
  const fencing = values.fencing ?? !lockType.startsWith('redisson');
  const onWarning = ({ message }: { readonly message: string }) => complain(message);
  const settings = { registryKey: registryKeyOf(values) ?? 'locks', lockType, name: values.name, fencing, onWarning };
  const { client, close } = await connectTo(values);
  const signals = new Signals();
  let registry: RedisLockRegistry | undefined;
  try {
    registry = new RedisLockRegistry(client, settings);
    const lock = lockIn(registry, key, values, permits);
    const lease = await acquire(lock, { ...times, signal: signals.beforeCommand }, notFree, values.quiet);
    let exitCode: number = EXIT.cannotExecute;
    let isLost = false;
    try {
      // A signal may have come with the grant.
      signals.beforeCommand.throwIfAborted();
      exitCode = await exitCodeOf(rest, lease, grace, signals);
    } finally {
      isLost = await giveBack(lease);
    }
    return exitCode === EXIT.ok && isLost ? EXIT.lost : exitCode;
  } catch (error) {
    if (error === signals.beforeCommand.reason) return EXIT.signal + signals.number;
    const isInput = error instanceof TypeError || error instanceof RangeError;
    throw isInput ? usageError(messageOf(error)) : error;
  } finally {
    await registry?.close({ timeout: 0 });
    close();
    signals.close();
  }
}

function assertOneOf(values: Values, names: readonly (keyof Values)[]): void {
  const given = names.filter((name) => values[name]);
  if (given.length > 1) throw usageError(`--${given.join(' and --')} exclude each other`);
}

function lockIn(
  registry: RedisLockRegistry,
  key: string,
  { shared, exclusive }: Values,
  permits?: number,
): DistributedLock {
  if (permits !== undefined) return registry.semaphore(key, { permits });
  if (shared) return registry.readWrite(key).read;
  return exclusive ? registry.readWrite(key).write : registry.obtain(key);
}

/** The lease. Rejects with the reason of the signal that ended the wait. */
async function acquire(lock: DistributedLock, options: LockOptions, notFree: number, isQuiet = false): Promise<Lease> {
  let isWaiting = !isQuiet;
  const saying = setTimeout(async () => {
    const state = await lock.inspect().catch(() => undefined);
    if (isWaiting) complain(`waits for the lock "${lock.key}"${describedHolder(state?.owner)}`);
  }, SAID_AFTER);
  try {
    return await lock.lock(options);
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error;
    throw new ExitError(notFree, `The lock "${lock.key}" is not free${describedHolder(error.owner)}`);
  } finally {
    isWaiting = false;
    clearTimeout(saying);
  }
}

/** Whether the lock had been lost: a loss may not be found before the unlock. */
async function giveBack(lease: Lease): Promise<boolean> {
  const isSaid = lease.signal.aborted;
  try {
    await lease.unlock();
    return isSaid;
  } catch (error) {
    if (!isSaid) complain(messageOf(error));
    return isSaid || error instanceof LockLostError;
  }
}

function describedHolder(owner: string | undefined): string {
  if (owner === undefined) return '';
  const who = nameIn(owner) ?? holderOf(owner);
  return isKept(owner) ? `: ${who} had it, and its minimum hold has not ended` : `, ${who} holds it`;
}

/** Runs the command to its end. When the lock is lost, the command is ended. */
function exitCodeOf(words: readonly string[], lease: Lease, grace: number, signals: Signals): Promise<number> {
  const [command = '', ...args] = words;
  const { key, fencingToken, owner } = lease as Lease & { readonly owner: string };
  const token = fencingToken === undefined ? {} : { LOCK_FENCING_TOKEN: String(fencingToken) };
  const env = { ...process.env, LOCK_KEY: key, LOCK_OWNER: owner, ...token };
  const notStarted = (error: NodeJS.ErrnoException): number => {
    complain(`${command} cannot be started: ${error.message}`);
    return error.code === 'ENOENT' ? EXIT.notFound : EXIT.cannotExecute;
  };
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = spawn(command, args, { stdio: 'inherit', env });
    } catch (error) {
      // Node throws some of the system's errors, and reports others by an event.
      resolve(notStarted(error as NodeJS.ErrnoException));
      return;
    }
    signals.passOnTo(child);
    let killing: NodeJS.Timeout | undefined;
    const onLoss = (): void => {
      complain(`${messageOf(lease.signal.reason)}; the command gets SIGTERM`);
      child.kill('SIGTERM');
      killing = setTimeout(() => child.kill('SIGKILL'), grace);
    };
    const settle = (exitCode: number): void => {
      clearTimeout(killing);
      lease.signal.removeEventListener('abort', onLoss);
      resolve(exitCode);
    };
    lease.signal.addEventListener('abort', onLoss);
    if (lease.signal.aborted) onLoss();
    child.on('error', (error: NodeJS.ErrnoException) => {
      // The other errors are those of signals: the command still runs.
      if (error.syscall?.startsWith('spawn')) settle(notStarted(error));
      else complain(messageOf(error));
    });
    child.on('exit', (code, signal) => settle(code ?? EXIT.signal + constants.signals[signal ?? 'SIGKILL']));
  });
}

const SIGNALS = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/**
 * The signals to this process: one set of handlers from before the lock is acquired until it has been given back, so
 * that none of them ends this process while it holds the lock.
 */
class Signals {
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
