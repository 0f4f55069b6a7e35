import { NotReplicatedError } from '../errors';
import type { Orphans } from '../lease/orphans';
import type { HandOverResult } from '../lease/release';
import type { Grant, HandOver, LockProtocol, Refusal } from '../protocols/protocol';
import { isServerAnswer } from '../redis/failure';
import type { Acquisition } from './acquisition';

/**
 * Asks Redis to hand a lock over to another acquisition of this process. Resolves to its grant or its refusal, or to why
 * it has none.
 */
export async function requestHandOver(
  protocol: LockProtocol,
  owner: string,
  to: Acquisition,
  timeout: number,
  orphans: Orphans,
): Promise<Grant | Refusal | HandOverResult> {
  to.stamp();
  const handOver = protocol.handOver(owner, to, timeout);
  let result: HandOver;
  try {
    result = await handOver;
  } catch (error) {
    if (error instanceof NotReplicatedError) {
      await giveBack(protocol, to, timeout, orphans);
      return 'released';
    }
    // It was not executed, and there is still a key to release.
    if (isServerAnswer(error)) return 'not tried';
    // The new owner's orphan is followed up; the caller repeats the release.
    to.doubt(handOver);
    orphans.follow(to, protocol);
    return 'unknown';
  }
  return result.answer ?? result.found;
}

/**
 * Gives back what was handed over to a caller that has left, or by a grant that does not count: the lock, or a position
 * in its queue. The lock is not free before this is done: `unlock` waits for it.
 */
export async function giveBack(
  protocol: LockProtocol,
  acquisition: Acquisition,
  timeout: number,
  orphans: Orphans,
): Promise<void> {
  try {
    await protocol.release(acquisition.ticket, timeout);
  } catch {
    orphans.follow(acquisition, protocol);
  }
}
