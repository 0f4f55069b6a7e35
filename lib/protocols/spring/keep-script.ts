import { KEPT } from '../../api/owner-name';
import { LockScript } from '../../redis/script';
import { leftToKeep } from '../format/left-to-keep';
import { isFound } from '../format/replies';
import { publish, READ_HOLDER, returnWithListeners } from './spring-scripts';

/**
 * Gives a lock back that has to stay taken until its `minHold` ends. Waiters are notified as of a release: their next
 * attempt tells them when the key ends.
 *
 * KEYS: lock
 * ARGV: owner, ms left by the local clock, minHold and ttl of the acquisition in ms, what `publish` takes
 * Returns as the script that releases, with 1 for a lock that is kept.
 */
export const KEEP = new LockScript(
  'keep (spring)',
  `${READ_HOLDER}
-- It is kept already: the reply was lost.
if holder == '${KEPT}' .. ARGV[1] then return 1 end
if holder ~= ARGV[1] then return -1 end
${leftToKeep('ARGV[2]', 'ARGV[3]', 'ARGV[4]')}
-- PEXPIRE first: out of memory, Redis refuses SET to a script that has not written yet.
redis.call('PEXPIRE', KEYS[1], left)
redis.call('SET', KEYS[1], '${KEPT}' .. ARGV[1], 'PX', left)
${publish(5)}${returnWithListeners('1')}`,
  isFound,
);
