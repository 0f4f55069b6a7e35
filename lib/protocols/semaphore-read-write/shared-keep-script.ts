import { LockScript } from '../../redis/script';
import { isFound } from '../format/replies';
import { KEPT } from '../min-hold/kept';
import { leftToKeep } from '../min-hold/left-to-keep';
import { LEAVE_QUEUE, liveFor, PRELUDE, PROLONG, RETURN_GONE, returnAndNotify } from './shared-script-parts';

/** Of those that hold the lock: the owner does not any more. */
const LEFT = `
holders = holders - 1
isWritten = isWritten and kind ~= 'write'`;

/**
 * Gives back what has to stay taken until its `minHold` ends: another member, `<kind>:kept@<owner>`, takes its place,
 * and counts as any lease. Those that could enter without it are notified: the reply to their next attempt says when it
 * ends.
 *
 * KEYS and ARGV: as in shared-scripts.ts, then channel, ms left by the local clock, minHold and ttl of the acquisition
 * in ms
 * Returns as the script that releases, with 1 for a lease that is kept.
 */
export const KEEP = new LockScript(
  'keep (shared)',
  `${PRELUDE}${LEAVE_QUEUE}
local kept = kind .. ':${KEPT}' .. owner
-- It is kept already: the reply was lost. A late attempt may have entered once more.
if redis.call('ZSCORE', lock, kept) then
  redis.call('ZREM', lock, member)
  return { 1, 0 }
end
if not score or tonumber(score) <= now then
  local found = 0
  ${RETURN_GONE}
  return { found, 0 }
end
${leftToKeep(4, 'ARGV[6] - (score - now)')}
-- PEXPIREAT first: out of memory, Redis refuses ZADD to a script that has not written yet.
${liveFor('left')}
redis.call('ZADD', lock, digits(now + left), kept)
redis.call('ZREM', lock, member)
${PROLONG}
${returnAndNotify('1', LEFT)}`,
  isFound,
);
