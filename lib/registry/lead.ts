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
  if (signal === undefined || (signal as unknown) instanceof AbortSignal) return stand(lock, task, signal);
  // `AbortSignal.any` hears nothing of a signal of another realm, or of a polyfill.
  if (signal.aborted) return undefined;
  const mirror = new AbortController();
  const stop = { interrupt: (reason: unknown) => mirror.abort(reason) };
  listen(signal, stop);
  return stand(lock, task, mirror.signal).finally(() => unlisten(signal, stop));
}

async function stand<T>(lock: DistributedLock, task: Task<T>, stop: AbortSignal | undefined): Promise<T | undefined> {
  while (!stop?.aborted) {
    let leads: Lease | undefined;
    try {
      return await lock.run(
        (lease) => {
          leads = lease;
          const { signal } = lease;
          return task({ lease, signal: stop === undefined ? signal : AbortSignal.any([signal, stop]) });
        },
        { signal: stop },
      );
    } catch (error) {
      if (stop?.aborted && (leads === undefined || isOfStop(error, stop))) break;
      if (leads === undefined) await pauseIfItMayPass(error, lock.key, stop);
      else if (!isLoss(error, leads)) throw error;
    }
  }
  return undefined;
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
