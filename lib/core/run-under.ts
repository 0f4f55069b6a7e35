import type { LockMessage } from '../api/messages';
import { traceRun } from '../diagnostics/channels';
import { Scope } from './scope';
import type { HeldLease } from './unlock-order';

/** A lock under which tasks run. */
export interface ScopedLock {
  /** How many run now. */
  runs: number;
  /** The lock whose scope a task gets: what takes that lock inside the task enters again. */
  readonly scopeLock: object;
}

/** A lock, and the lease of it that a task runs under. */
interface Section {
  readonly lock: ScopedLock;
  readonly lease: HeldLease;
}

/**
 * Runs the task in a scope of each section, at least one, and then unlocks `lease`, which is that of all of them. An
 * error of the task is thrown. Otherwise its result is returned, unless the lease was lost.
 */
export async function runUnder<L extends HeldLease, T>(
  lease: L,
  sections: readonly Section[],
  task: (lease: L) => T | PromiseLike<T>,
  traced: LockMessage | undefined,
): Promise<T> {
  const run = (): Promise<T> => runInScopes(sections, 0, () => task(lease));
  for (const { lock } of sections) lock.runs++;
  let result: T;
  try {
    result = await (traced === undefined ? run() : traceRun(traced, lease, lease.isReentry, run));
  } finally {
    await lease[Symbol.asyncDispose]();
    for (const { lock } of sections) lock.runs--;
  }
  if (lease.checkLost()) throw lease.lossError(result);
  return result;
}

/** One scope inside the other, from the section with this index on: a scope is made in the one that is around it. */
function runInScopes<T>(sections: readonly Section[], index: number, task: () => T | PromiseLike<T>): Promise<T> {
  const { lock, lease } = sections[index] as Section;
  const isInnermost = index === sections.length - 1;
  return new Scope(lock.scopeLock, lease).run(isInnermost ? task : () => runInScopes(sections, index + 1, task));
}
