import type { DistributedLock, Leadership, Lease } from '../api/distributed-lock';
import { CannotAcquireLockError, LockLostError } from '../api/errors';
import type { LeadOptions } from '../api/options';
import { listen, unlisten, Wait } from '../core/wait';
import { abortSignal, callback, checkedOptions } from '../internal/validation';
import { isFinal } from '../redis/failure';

/** ms after which a process tries to lead again when Redis could not be reached. */
const STAND_AGAIN_AFTER = 1_000;

/** Runs a task while this process leads: see `LockRegistry.lead`. */
export async function lead<T>(
  lock: DistributedLock,
  task: (leadership: Leadership) => T | PromiseLike<T>,
  options: LeadOptions = {},
): Promise<T | undefined> {
  callback('task', task);
  const { signal: stop } = checkedOptions<LeadOptions>({ signal: abortSignal }, options);
  while (!stop?.aborted) {
    let leads: Lease | undefined;
    // `AbortSignal.any` would not hear of a signal of another realm.
    const ends = new AbortController();
    const end = { interrupt: (reason: unknown) => ends.abort(reason) };
    try {
      return await lock.run(
        (lease) => {
          leads = lease;
          for (const signal of [lease.signal, stop]) {
            if (signal?.aborted) ends.abort(signal.reason);
            else if (signal !== undefined) listen(signal, end);
          }
          return task({ lease, signal: ends.signal });
        },
        { signal: stop },
      );
    } catch (error) {
      if (stop?.aborted && (leads === undefined || isOfStop(error, stop))) break;
      if (leads === undefined) await pauseIfItMayPass(error, lock.key, stop);
      // A task may also throw the loss of another lock.
      else if (!(error instanceof LockLostError && (leads.signal.aborted || isUnconfirmed(error, lock)))) throw error;
    } finally {
      for (const signal of [leads?.signal, stop]) if (signal !== undefined) unlisten(signal, end);
    }
  }
  return undefined;
}

function isOfStop(error: unknown, stop: AbortSignal): boolean {
  return error === stop.reason || (error as Error | null | undefined)?.name === 'AbortError';
}

/** By `assertHeld`, after a suspension of the machine: the lease that led may be held still. */
function isUnconfirmed({ key, reason }: LockLostError, lock: DistributedLock): boolean {
  return key === lock.key && reason === 'unconfirmed';
}

/** The process could not stand. Throws what another attempt cannot change. */
async function pauseIfItMayPass(error: unknown, key: string, stop: AbortSignal | undefined): Promise<void> {
  if (!(error instanceof CannotAcquireLockError) || isFinal(error.cause)) throw error;
  const wait = new Wait(key, Number.POSITIVE_INFINITY, stop);
  await wait.sleep(STAND_AGAIN_AFTER).catch(() => undefined);
  wait.end();
}
