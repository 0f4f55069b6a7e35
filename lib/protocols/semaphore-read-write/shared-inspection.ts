import type { Redis } from '../../redis/redis';
import { LockScript } from '../../redis/script';
import { LEAVE_MARK } from '../inspection/forced-unlock';
import type { InspectionScripts } from '../inspection/inspection-scripts';
import { Inspector } from '../inspection/inspector';
import type { ProtocolSettings } from '../protocol';
import { ENTRY_RULE } from './entry-rule';
import { notifyNext, PRELUDE, READ_QUEUE } from './shared-script-parts';

/*
 * What a shared lock looks like, for people. A forced unlock ends all leases.
 *
 * KEYS: lock, waiters [, fence]
 * ARGV: '', ''; to unlock by force also: the command that deletes, channel
 * Returns { the owner whose lease lasts longest or '', ms until it ends, the token of a writer or '', tickets, leases
 * }.
 */

const READ = `${PRELUDE}
local leases = redis.call('ZRANGEBYSCORE', lock, '(' .. digits(now), '+inf', 'WITHSCORES')
local count = #leases / 2
local holder = count > 0 and string.match(leases[#leases - 1], ':(.*)$')
local remaining = count > 0 and leases[#leases] - now or 0
local isWritten = holder and string.sub(leases[#leases - 1], 1, 6) == 'write:'
local token = isWritten and KEYS[3] and redis.call('GET', KEYS[3]) or ''
local waiting = redis.call('HLEN', waiters) - redis.call('HEXISTS', waiters, 'permits')
local state = { holder or '', remaining, token, waiting, count }`;

const SHARED: InspectionScripts = {
  inspect: new LockScript(
    'inspect (shared)',
    `${READ}\nreturn state`,
    (reply) => Array.isArray(reply) && reply[0] !== '',
  ),
  forceUnlock: new LockScript(
    'unlock by force (shared)',
    `${READ}
if holder then
  local owners = {}
  for i = 1, #leases, 2 do owners[#owners + 1] = string.match(leases[i], ':(.*)$') end
  redis.call('DEL', lock)
  holder = table.concat(owners, ' ')
  ${LEAVE_MARK}
  ${READ_QUEUE}
  ${ENTRY_RULE}
  ${notifyNext('ARGV[4]')}
end
return state`,
  ),
};

export function sharedInspector(redis: Redis, settings: ProtocolSettings): Inspector {
  return new Inspector(redis, {
    scripts: SHARED,
    keys: (names) => [names.lock, names.companion('waiters'), ...(settings.fencing ? [names.companion('fence')] : [])],
    notification: (names) => [names.channel],
    format: { deleteCommand: 'DEL' },
  });
}
