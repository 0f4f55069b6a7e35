import { NotReplicatedError } from '../errors';
import type { Orphans } from '../lease/orphans';
import type { HandOverResult } from '../lease/release';
import type { LockProtocol } from '../protocols/protocol';
import { isServerAnswer } from '../redis/failure';
import type { Acquisition } from './acquisition';

/** A hand-over failed: what became of the lock. */
export async function afterFailure(
  error: unknown,
  handingOver: Promise<unknown>,
  protocol: LockProtocol,
  to: Acquisition,
  timeout: number,
  orphans: Orphans,
): Promise<HandOverResult> {
  if (error instanceof NotReplicatedError) {
    return giveBack(protocol, to, timeout, orphans);
  }
  // It was not executed, and there is still a key to release.
  if (isServerAnswer(error)) return 'not tried';
  // The new owner's orphan is followed up; the caller repeats the release.
  to.doubt(handingOver);
  orphans.follow(to, protocol);
  return 'unknown';
}

/**
 * Gives back a lock, or a position in its queue, whose caller has left or whose grant does not count. `unlock` waits
 * for this.
 */
export async function giveBack(
  protocol: LockProtocol,
  acquisition: Acquisition,
  timeout: number,
  orphans: Orphans,
): Promise<'released'> {
  try {
    await protocol.release(acquisition.ticket, timeout);
  } catch {
    orphans.follow(acquisition, protocol);
  }
  return 'released';
}
