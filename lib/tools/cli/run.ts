import type { DistributedLock, Lease, LockOptions } from '../../api/distributed-lock';
import { LockLostError, LockTimeoutError } from '../../api/errors';
import { DEFAULT_TYPE, traitsOf } from '../../api/lock-types';
import { holderOf, isDetached, isKept, isOwner, nameIn } from '../../api/owner-name';
import { messageOf } from '../../redis/failure';
import { RedisLockRegistry } from '../../registry/redis-lock-registry';
import type { Arguments, Values } from './arguments';
import { delayOf, durationOf, keyOf, lockTypeOf, numberOf, registryKeyOf } from './arguments';
import { Command } from './child';
import { type Connection, connectTo } from './connect';
import { complain, EXIT, ExitError, usageError } from './output';
import type { Signals } from './signals';

/** ms after which `run` says that it waits. */
const SAID_AFTER = 1_000;

/** `redis-locks run KEY -- command args…` */
export async function run(args: Arguments, signals: Signals): Promise<number> {
  const { values, rest = [] } = args;
  if (rest.length === 0) throw usageError('The command is missing: redis-locks run KEY -- COMMAND');
  const key = keyOf(args);
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
  const lockType = lockTypeOf(values) ?? DEFAULT_TYPE;
  const fencing = values.fencing ?? !traitsOf(lockType).keepsCounter;
  const onWarning = ({ message }: { readonly message: string }) => complain(message);
  const warnAfter = values.quiet ? Number.POSITIVE_INFINITY : undefined;
  const registryKey = registryKeyOf(values) ?? 'locks';
  const settings = { registryKey, lockType, name: values.name, fencing, warnAfter, onWarning };
  let connection: Connection | undefined;
  let registry: RedisLockRegistry | undefined;
  try {
    connection = await signals.unlessOne(connectTo(values));
    registry = new RedisLockRegistry(connection.client, settings);
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
    connection?.close();
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
    const holder = error.remaining === undefined ? '' : describedHolder(error.owner ?? '');
    throw new ExitError(notFree, `The lock "${lock.key}" is not free${holder}`);
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
  const value = holderOf(owner);
  // Data of an application, which may be a secret, keeps the lock taken too.
  const who = nameIn(owner) ?? (isOwner(value) ? value : 'another program');
  if (isDetached(owner)) return `: ${who} had it, and has detached its lease`;
  return isKept(owner) ? `: ${who} had it, and its minimum hold has not ended` : `, ${who} holds it`;
}

/** Runs the command to its end. When the lock is lost, all of the command is ended. */
async function exitCodeOf(words: readonly string[], lease: Lease, grace: number, signals: Signals): Promise<number> {
  const { key, fencingToken, owner, signal } = lease as Lease & { readonly owner: string };
  // Without one, also not that of a `run` around this one.
  const token = fencingToken === undefined ? undefined : String(fencingToken);
  const environment = { LOCK_OWNER: owner, LOCK_KEY: key, LOCK_FENCING_TOKEN: token };
  const command = await Command.start(words, environment, grace);
  if (typeof command === 'number') return command;
  signals.passOnTo(command);
  const onLoss = (): void => {
    complain(`${messageOf(signal.reason)}; the command gets SIGTERM`);
    command.end();
  };
  signal.addEventListener('abort', onLoss);
  if (signal.aborted) onLoss();
  try {
    return await command.exitCode;
  } finally {
    signal.removeEventListener('abort', onLoss);
  }
}
