import type { ProtocolSettings } from '../../core/protocol';
import type { Redis } from '../../redis/redis';
import { LockScript } from '../../redis/script';
import type { InspectionScripts } from '../format/lock-scripts';
import { LEAVE_MARK } from '../format/script-parts';
import { Inspector } from '../inspector';
import { LOCK, QUEUE } from './shared-scripts';

/*
 * What a shared lock looks like, for people. A forced unlock ends all leases that were inspected.
 *
 * KEYS: lock, waiters [, fence]
 *
 * To inspect. ARGV: '', ''
 * Returns { the owner whose lease lasts longest or '', ms until it ends, the token of a writer or '', tickets, leases, or
 * permits that are taken; the members with spaces between them }.
 *
 * To unlock by force. ARGV: the members, '', '', channel
 * Returns 1, or 0 when there were none of them any more.
 */

const INSPECT = `${LOCK}
local leases = redis.call('ZRANGEBYSCORE', lock, '(' .. digits(now), '+inf', 'WITHSCORES')
local count = #leases / 2
local holder = count > 0 and string.match(leases[#leases - 1], ':(.*)$')
local remaining = count > 0 and leases[#leases] - now or 0
local isWritten = holder and string.sub(leases[#leases - 1], 1, 6) == 'write:'
local token = isWritten and KEYS[3] and redis.call('GET', KEYS[3]) or ''
local waiting = redis.call('HLEN', waiters) - redis.call('HEXISTS', waiters, 'permits')
local members = {}
for i = 1, #leases, 2 do
  members[#members + 1] = leases[i]
  count = count + tonumber(string.match(leases[i], '%*(%d+)$') or 1) - 1
end
return { holder or '', remaining, token, waiting, count, table.concat(members, ' ') }`;

const SHARED: InspectionScripts = {
  inspect: new LockScript('inspect (shared)', INSPECT, (reply) => Array.isArray(reply) && reply[0] !== ''),
  forceUnlock: new LockScript(
    'unlock by force (shared)',
    `${LOCK}${QUEUE}
local remaining, owners = redis.call('PTTL', lock), {}
removeEnded()
for seen in string.gmatch(ARGV[1], '%S+') do
  if redis.call('ZREM', lock, seen) == 1 then owners[#owners + 1] = string.match(seen, ':(.*)$') end
end
if #owners == 0 then return 0 end
local holder = table.concat(owners, ' ')
${LEAVE_MARK}
readQueue()
letIn(nil, ARGV[4], true)
return 1`,
  ),
};

export function sharedInspector(redis: Redis, settings: ProtocolSettings): Inspector {
  return new Inspector(redis, {
    scripts: SHARED,
    keys: (names) => [names.lock, names.companion('waiters'), ...(settings.fencing ? [names.companion('fence')] : [])],
    notification: (names) => [names.channel],
  });
}
