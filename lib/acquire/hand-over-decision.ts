/*
 * What becomes of a lock at `unlock`: it is handed over to a caller of this process, or released for all processes.
 * Without a local caller that waits, it is released; before the end of its `minHold` it is kept
 * (`acquire/local-contention`, `lease/release`). With one, the lock type decides. Here it is decided for `spin`,
 * `pub-sub` and `redisson`. The others have a queue in Redis:
 *
 * - `fair`: the server decides between the next caller of this process and the tickets of other processes, by the times
 *   of their calls: `HAND_OVER` in `fair/fair-release-scripts`, by `HAND_OVER_FUNCTION` in
 *   `fair/fair-script-parts`.
 * - `redisson-fair`, semaphores and read/write locks: always released, and the first in the queue is notified.
 */

/** `leave to pollers`: release, without notifying waiters, so that a process that polls can take the lock. */
type HandOverDecision =
  | 'hand over'
  | 'hand over unless others listen'
  | 'release'
  | 'release at the end of the slice'
  | 'leave to pollers';

/**
 * Whether the next local caller gets the lock though other processes may wait. `protocols/contended/contended-protocol`
 * asks. `handsOver`: false with the option `handOver: 0`. `isPauseDue`: the lock was busy for so long that it has to be
 * left to pollers. `isSliceOver`: this process has had the lock for its slice. `canCountListeners`: waiting processes
 * listen for releases, and the script can count them.
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
