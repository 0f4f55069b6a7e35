import { KEPT } from '../../api/owner-name';
import { LockScript } from '../../redis/script';
import { leftToKeep } from '../format/left-to-keep';
import { isFound } from '../format/replies';
import { returnWithListeners } from '../spring/spring-scripts';
import { EXAMINE_GONE, OWNED, publishRelease } from './redisson-scripts';

/** Makes KEYS[1], which is the owner's, the key of nobody. ARGV[first]: the numbers of a `Keep`. Sets `owned`. */
export const keep = (first: number) => `
${OWNED}
-- It is kept already: the reply was lost.
if owned == -1 and redis.pcall('HEXISTS', KEYS[1], '${KEPT}' .. ARGV[1]) == 1 then return 1 end
${EXAMINE_GONE}
if owned ~= 1 then return owned end
${leftToKeep(`ARGV[${first}]`, `ARGV[${first + 1}]`, `ARGV[${first + 2}]`)}
-- PEXPIRE first: out of memory, Redis refuses HSET to a script that has not written yet. The new field comes before the
-- old one goes, since a hash without fields is deleted.
redis.call('PEXPIRE', KEYS[1], left)
redis.call('HSET', KEYS[1], '${KEPT}' .. ARGV[1], 1)
redis.call('HDEL', KEYS[1], ARGV[1])`;

/**
 * Gives a lock back that has to stay taken until its `minHold` ends. Waiters are notified as of a release: their next
 * attempt tells them when the key ends.
 *
 * KEYS: lock
 * ARGV: owner, ms left by the local clock, minHold and ttl of the acquisition in ms, PUBLISH or SPUBLISH, channel
 * Returns as the script that releases, with 1 for a lock that is kept.
 */
export const KEEP = new LockScript(
  'keep (redisson)',
  `${keep(2)}
${publishRelease('ARGV[5]', 'ARGV[6]')}${returnWithListeners('1')}`,
  isFound,
);
