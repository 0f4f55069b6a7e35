/*
 * What becomes of a lock at `unlock`: it is handed over to a caller of this process, or released for all processes.
 * Two questions, one after the other. The second one is here for `spin`, `pub-sub` and `redisson`. The others have a
 * queue in Redis:
 *
 * - `fair`: the server decides between the next caller of this process and the tickets of other processes, by the times
 *   of their calls: `HAND_OVER` in `fair/fair-release-scripts`, by `HAND_OVER_FUNCTION` in
 *   `fair/fair-script-parts`.
 * - `redisson-fair`, semaphores and read/write locks: always released, and the first in the queue is notified.
 */

/**
 * First, `acquire/local-contention` asks for the local caller that is next; without one the lock is released, or kept.
 * `next`: the first in the local queue. `mustKeep`: the `minHold` has not ended.
 */
export function localSuccessor<Caller>(next: Caller | undefined, mustKeep: boolean): Caller | undefined {
  return mustKeep ? undefined : next;
}

/** `leave to pollers`: release, without notifying waiters, so that a process that polls can take the lock. */
export type HandOverDecision =
  | 'hand over'
  | 'hand over unless others listen'
  | 'release'
  | 'release at the end of the slice'
  | 'leave to pollers';

/**
 * Then, `protocols/contended/contended-protocol` asks whether that caller gets the lock though other processes may wait.
 * `handsOver`: false with the option `handOver: 0`. `isPauseDue`: the lock was busy for so long that it has to be left to
 * pollers. `isSliceOver`: this process has had the lock for its slice. `canCountListeners`: waiting processes listen for
 * releases, and the script can count them.
 */
export function decideHandOver(
  handsOver: boolean,
  isPauseDue: boolean,
  isSliceOver: boolean,
  canCountListeners: boolean,
): HandOverDecision {
  if (!handsOver) return 'release';
  if (isPauseDue) return 'leave to pollers';
  if (!isSliceOver) return 'hand over';
  return canCountListeners ? 'hand over unless others listen' : 'release at the end of the slice';
}
