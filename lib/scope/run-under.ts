import { traceRun } from '../diagnostics/channels';
import type { LockMessage } from '../diagnostics/messages';
import type { Lease } from '../distributed-lock';
import type { HeldLease } from '../lease/unlock-order';
import type { Scope } from './scope';

/** The task, and then the unlock; `lock` counts what runs under it. An error of the task wins, and so does its result, unless the lease was lost under it. */
export async function runUnder<T>(
  lock: { runs: number },
  lease: HeldLease,
  scope: Scope,
  task: (lease: Lease) => T | PromiseLike<T>,
  traced: LockMessage | undefined,
): Promise<T> {
  lock.runs++;
  let result: T;
  try {
    result = await (traced === undefined
      ? scope.run(() => task(lease))
      : traceRun(traced, lease, lease.isReentry, () => scope.run(() => task(lease))));
  } finally {
    await lease[Symbol.asyncDispose]();
    lock.runs--;
  }
  if (lease.wasLost) throw lease.lossError(result);
  return result;
}
