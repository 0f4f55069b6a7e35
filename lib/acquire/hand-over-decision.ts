/*
 * What becomes of a lock at `unlock`: it is handed over to a caller of this process, or released for all processes.
 * Here for `spin`, `pub-sub` and `redisson`; two questions, one after the other. The others have a queue in Redis:
 *
 * - `fair`: the server hands the lock over to the first ticket. `HAND_OVER_FUNCTION` in `fair/fair-script-parts` decides.
 * - `redisson-fair`, semaphores and read/write locks: always released, and the first in the queue is notified.
 */

/**
 * First, `acquire/local-contention` asks for the local caller that is to get the lock; without one it is released, or kept.
 * `next`: the first in the local queue. `mustKeep`: the `minHold` has not ended. `slice`: the option `handOver`.
 */
export function localSuccessor<Caller>(
  next: Caller | undefined,
  mustKeep: boolean,
  slice: number | undefined,
): Caller | undefined {
  return mustKeep || slice === 0 ? undefined : next;
}

/** `leave to pollers`: release, without notifying waiters, so that a process that polls can take the lock. */
export type HandOverDecision = 'hand over' | 'hand over unless others listen' | 'release' | 'leave to pollers';

/**
 * Then, `protocols/contended/contended-protocol` asks whether that caller gets the lock though other processes may wait.
 * `isPauseDue`: the lock was busy for so long that it has to be left to pollers. `isSliceOver`: this process has had the
 * lock for its slice. `canCountListeners`: waiting processes listen for releases, and the script can count them.
 */
export function decideHandOver(
  isPauseDue: boolean,
  isSliceOver: boolean,
  canCountListeners: boolean,
): HandOverDecision {
  if (isPauseDue) return 'leave to pollers';
  if (!isSliceOver) return 'hand over';
  return canCountListeners ? 'hand over unless others listen' : 'release';
}
