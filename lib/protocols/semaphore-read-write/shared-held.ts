import { EXAMINE_ERROR, examineGone } from '../held-scripts';
import { ifForcedAmong } from './shared-forced-unlock';
import type { SharedKind } from './shared-kinds';

/**
 * Whether the owner has a live lease of this kind. As `STRING_HELD`. Other owners hold the lock too, so the command
 * that writes touches nothing but the owner's member.
 */
export function memberHeld(kind: SharedKind): string {
  return `
local member, time = '${kind}:' .. owner, redis.call('TIME')
local found = redis.pcall('ZSCORE', lock, member)
if type(found) == 'table' then ${EXAMINE_ERROR}
elseif not found or tonumber(found) <= time[1] * 1000 + math.floor(time[2] / 1000) then
${examineGone("'ZREM', lock, member", ifForcedAmong)}
end`;
}
