import { EXAMINE_ERROR, EXAMINE_GONE } from '../held-scripts';

/** Whether a hash has the owner as a field. As `STRING_HELD`. */
export const HASH_HELD = `
local found = redis.pcall('HEXISTS', lock, owner)
if type(found) == 'table' then ${EXAMINE_ERROR}
elseif found == 0 and redis.call('EXISTS', lock) == 0 then ${EXAMINE_GONE}
elseif found == 0 then state = 'stolen' end`;
