import type { DistributedLock, Leadership, Lease } from '../api/distributed-lock';
import { LockLostError } from '../api/errors';
import type { LeadOptions } from '../api/options';
import { mayPass } from '../core/availability';
import { listen, unlisten, Wait } from '../core/wait';
import { abortSignal, callback, checkedOptions } from '../internal/validation';

/** ms after which a process tries to lead again when Redis could not be reached. */
const STAND_AGAIN_AFTER = 1_000;

type Task<T> = (leadership: Leadership) => T | PromiseLike<T>;

/** Runs a task while this process leads: see `LockRegistry.lead`. */
export async function lead<T>(lock: DistributedLock, task: Task<T>, options: LeadOptions = {}): Promise<T | undefined> {
  callback('task', task);
  const { signal } = checkedOptions<LeadOptions>({ signal: abortSignal }, options);
  while (!signal?.aborted) {
    let leads: Lease | undefined;
    try {
      return await lock.run(
        (lease) => {
          leads = lease;
          return signal === undefined ? task({ lease, signal: lease.signal }) : perform(task, lease, signal);
        },
        { signal },
      );
    } catch (error) {
      if (signal?.aborted && (leads === undefined || isOfStop(error, signal))) break;
      if (leads === undefined) await pauseIfItMayPass(error, lock.key, signal);
      else if (!isLoss(error, leads)) throw error;
    }
  }
  return undefined;
}

/**
 * The signal of the task aborts with the first of both. Not `AbortSignal.any`: Node keeps a part of each result for as long as
 * `stop` lives, and it hears nothing of a signal of another realm, or of a polyfill.
 */
async function perform<T>(task: Task<T>, lease: Lease, stop: AbortSignal): Promise<T> {
  const either = new AbortController();
  const sources = [lease.signal, stop];
  const source = { interrupt: (reason: unknown) => either.abort(reason) };
  for (const signal of sources) {
    if (signal.aborted) either.abort(signal.reason);
    else listen(signal, source);
  }
  try {
    return await task({ lease, signal: either.signal });
  } finally {
    for (const signal of sources) unlisten(signal, source);
  }
}

/** Whether the lease that led was lost. `assertHeld` also throws while Redis has to confirm the lease. */
function isLoss(error: unknown, { key, signal }: Lease): boolean {
  if (!(error instanceof LockLostError)) return false;
  return signal.aborted || (error.key === key && error.reason === 'unconfirmed');
}

function isOfStop(error: unknown, stop: AbortSignal): boolean {
  return error === stop.reason || (error as Error | null | undefined)?.name === 'AbortError';
}

/** The process could not stand. Throws what another attempt cannot change. */
async function pauseIfItMayPass(error: unknown, key: string, stop: AbortSignal | undefined): Promise<void> {
  if (!mayPass(error)) throw error;
  const wait = new Wait(key, Number.POSITIVE_INFINITY, stop);
  await wait.sleep(STAND_AGAIN_AFTER).catch(() => undefined);
  wait.end();
}
