import { KEPT } from '../../owner-name';
import { LockScript } from '../../redis/script';
import { isFound } from '../format/replies';
import { ifForced, leftToKeep } from '../format/script-parts';
import { publish } from '../spring/spring-scripts';
import { FUNCTIONS, HAND_OVER_FUNCTION, KEYS_BY_NAME, NOW } from './fair-script-parts';

/**
 * The age of a grant by hand-over in ms: its owner value says when it was made. Its key may not have the full ttl yet.
 */
const AGE = `string.find(holder, '@', 1, true) and (now - string.match(holder, '@(%d+)$')) / 1000`;

/**
 * Gives a lock back that has to stay taken until its `minHold` ends. The process of the first ticket is asked to poll:
 * it learns when the key ends, and polls then.
 *
 * ARGV: owner or ticket, ms left by the local clock, minHold and ttl of the acquisition in ms, PUBLISH or SPUBLISH,
 * what `publish` of spring takes
 * Returns 1 kept; 0 no key; -1 the key of another owner.
 */
export const KEEP = new LockScript(
  'keep (fair)',
  `${KEYS_BY_NAME}
local owner, publish = ARGV[1], ARGV[5]
${NOW}
${FUNCTIONS}${HAND_OVER_FUNCTION}
local holder = redis.pcall('GET', lock)
if not holder then
  local found = 0
  ${ifForced('owner', 'found = -1')}
  return found
end
if type(holder) == 'table' then return -1 end
local function isOf(value) return value == owner or string.match(value, '^(.*)@') == owner end
-- It is kept already: the reply was lost.
local kept = string.match(holder, '^${KEPT}(.*)$')
if kept and isOf(kept) then return 1 end
if not isOf(holder) then return -1 end
${leftToKeep(2, AGE)}
redis.call('PEXPIRE', lock, left)
redis.call('SET', lock, '${KEPT}' .. holder, 'PX', left)
${publish(6)}
local first = redis.call('ZRANGE', queue, 0, 0)[1]
if first then notify(processOf(first), lock) end
return 1`,
  isFound,
);
