import { type CannotAcquireLockError, cannotAcquire } from '../errors';
import { clock } from '../internal/clock';
import { isServerAnswer, messageOf } from '../redis/failure';
import type { Availability } from './availability';
import type { Wait } from './wait';

/**
 * The error of a caller that Redis has not answered. The cause is the last answer of the server, or the last error of the
 * socket: it says more than the silence. `slot`: of the lock, on a cluster. `lastError`: of the client.
 */
export function unanswered(
  availability: Availability,
  wait: Wait,
  slot: number | undefined,
  lastError: unknown,
): CannotAcquireLockError {
  const { failure } = availability;
  const where = slot === undefined ? '' : ` (slot ${slot} of the cluster)`;
  const ms = Math.round(availability.silence(wait.startedAt, clock.now()));
  if (isServerAnswer(failure)) {
    const duration = ms > 0 ? ` for ${ms} ms` : '';
    return cannotAcquire(wait.key, `Redis answered${duration}: ${messageOf(failure)}${where}`, failure);
  }
  const reason = lastError === undefined ? '' : `; the last error of the client was: ${messageOf(lastError)}`;
  return cannotAcquire(wait.key, `Redis has not answered for ${ms} ms${where}${reason}`, failure ?? lastError);
}
