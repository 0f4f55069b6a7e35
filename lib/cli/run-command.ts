import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Lease, LockOptions } from '../distributed-lock';
import { LockTimeoutError } from '../errors';
import { holderOf, isKept } from '../protocols/min-hold/kept';
import { messageOf } from '../redis/failure';
import { type Arguments, keyOf, lockTypeOf } from './arguments';
import { durationOf } from './durations';
import { EXIT, ExitError } from './exit-codes';
import { complain, printable } from './output';
import { openSession } from './session';

/** Signals that are passed on to the command. A terminal sends SIGINT and SIGQUIT to the command itself. */
const PASSED_ON = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
const SENT_BY_TERMINALS: readonly string[] = ['SIGINT', 'SIGQUIT'];

/** Signals that end the wait for the lock. */
const ENDING = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT'] as const;

/** `redis-locks run KEY -- command args…` */
export async function run(args: Arguments): Promise<number> {
  const { values, rest = [] } = args;
  const key = keyOf(args);
  const [command, ...commandArgs] = rest;
  if (command === undefined) throw new ExitError(EXIT.usage, 'The command is missing: redis-locks run KEY -- COMMAND');
  if (values.wait !== undefined && values['no-wait'])
    throw new ExitError(EXIT.usage, '--wait and --no-wait exclude each other');
  const waitTime = values['no-wait']
    ? 0
    : values.wait === undefined
      ? Number.POSITIVE_INFINITY
      : durationOf('wait', values.wait);
  const grace = durationOf('grace', values.grace ?? '10s');
  const ttl = values.ttl === undefined ? undefined : durationOf('ttl', values.ttl);
  const minHold = values['min-hold'] === undefined ? undefined : durationOf('min-hold', values['min-hold']);
  // A token of the Redisson types is a key that is never deleted.
  const fencing = values.fencing ?? !lockTypeOf(values).startsWith('redisson');
  const session = await openSession(values, { fencing });
  try {
    const lease = await acquire(key, () => session.registry.obtain(key), { waitTime, ttl, minHold });
    if (typeof lease === 'number') return lease;
    const { owner } = lease as Lease & { readonly owner: string };
    const token = lease.fencingToken === undefined ? {} : { LOCK_FENCING_TOKEN: String(lease.fencingToken) };
    const env = { ...process.env, LOCK_KEY: key, LOCK_OWNER: owner, ...token };
    const child = spawn(command, commandArgs, { stdio: 'inherit', env });
    try {
      return await exitCodeOf(child, command, lease, grace);
    } finally {
      await lease.unlock().catch((error: unknown) => complain(messageOf(error)));
    }
  } finally {
    await session.close();
  }
}

/** The lease; an exit code where a signal ended the wait. */
async function acquire(
  key: string,
  obtain: () => { lock(options: object): Promise<Lease> },
  options: LockOptions,
): Promise<Lease | number> {
  const stop = new AbortController();
  let ended: NodeJS.Signals | undefined;
  const end = (signal: NodeJS.Signals): void => {
    ended = signal;
    stop.abort(new Error(signal));
  };
  for (const signal of ENDING) process.on(signal, end);
  try {
    return await obtain().lock({ ...options, signal: stop.signal });
  } catch (error) {
    if (ended !== undefined) return EXIT.signal + constants.signals[ended];
    if (error instanceof LockTimeoutError) {
      throw new ExitError(EXIT.notFree, `The lock "${printable(key)}" is not free${described(error.owner)}`);
    }
    const isInput = error instanceof TypeError || error instanceof RangeError;
    throw new ExitError(isInput ? EXIT.usage : EXIT.unavailable, messageOf(error));
  } finally {
    for (const signal of ENDING) process.off(signal, end);
  }
}

function described(owner: string | undefined): string {
  if (owner === undefined) return '';
  const who = printable(holderOf(owner));
  return isKept(owner) ? `: ${who} had it, and its minimum hold has not ended` : `, ${who} holds it`;
}

/** Waits for the end of the command. When the lock is lost, the command is ended. */
function exitCodeOf(child: ChildProcess, command: string, lease: Lease, grace: number): Promise<number> {
  return new Promise((resolve) => {
    let killing: NodeJS.Timeout | undefined;
    const passOn = (signal: NodeJS.Signals): void => {
      if (!(process.stdin.isTTY && SENT_BY_TERMINALS.includes(signal))) child.kill(signal);
    };
    const onLoss = (): void => {
      complain(`${messageOf(lease.signal.reason)}; the command gets SIGTERM`);
      child.kill('SIGTERM');
      killing = setTimeout(() => child.kill('SIGKILL'), grace);
    };
    const settle = (exitCode: number): void => {
      clearTimeout(killing);
      lease.signal.removeEventListener('abort', onLoss);
      for (const signal of PASSED_ON) process.off(signal, passOn);
      resolve(exitCode === EXIT.ok && lease.signal.aborted ? EXIT.lost : exitCode);
    };
    for (const signal of PASSED_ON) process.on(signal, passOn);
    lease.signal.addEventListener('abort', onLoss);
    if (lease.signal.aborted) onLoss();
    child.on('error', (error: NodeJS.ErrnoException) => {
      complain(`${command} cannot be started: ${error.message}`);
      settle(error.code === 'ENOENT' ? EXIT.notFound : EXIT.cannotExecute);
    });
    child.on('exit', (code, signal) => settle(code ?? EXIT.signal + constants.signals[signal ?? 'SIGKILL']));
  });
}
