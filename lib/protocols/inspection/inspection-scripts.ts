import { KEPT } from '../../api/owner-name';
import { LockScript } from '../../redis/script';
import { deleteBy } from '../spring/spring-scripts';
import { LEAVE_MARK } from './forced-unlock';

/*
 * What a lock looks like, for people. Each lock type has two scripts.
 *
 * KEYS: lock [, queue, for the types that have one] [, fence or token]
 *
 * To inspect. ARGV: NUMSUB, SHARDNUMSUB or '', the channel whose listeners wait
 * Returns { owner or '', remaining ms of its key, last token or '', how many wait or -1 }.
 *
 * To unlock by force: deletes the lock if it still is the owner's that was inspected, and notifies the waiters. A client
 * may repeat the command whose reply was lost: the lock may be the next owner's by then.
 * ARGV: owner, '', the command that deletes, and how the waiters are notified, see below
 * Returns 1, or 0 for a lock that was not this owner's any more.
 */

export interface InspectionScripts {
  readonly inspect: LockScript;
  readonly forceUnlock: LockScript;
}

/** For `scripts`: Lua that reads the owner. */
export const OWNER_OF_STRING = `redis.call('GET', KEYS[1])`;

/** The acquisition that an owner value names, be it granted with a claim window, or kept. In Lua. */
const acquisitionOf = (owner: string) => `string.gsub(string.gsub(${owner}, '^${KEPT}', ''), '@%d+$', '')`;

/** pcall: a user without rights on it, or an old server, does not learn how many wait. */
const LISTENERS = `
if ARGV[1] ~= '' then
  local counted = redis.pcall('PUBSUB', ARGV[1], ARGV[2])
  if not counted.err then waiting = tonumber(counted[2]) end
end`;

/** The channels ARGV[first] to the last. */
export const publishName = (first: number) => `
for i = ${first}, #ARGV do redis.pcall('PUBLISH', ARGV[i], KEYS[1]) end`;

/**
 * `owner`: Lua that reads the owner. `queue`: the command that counts the queue; `undefined`: there is none, and
 * listeners are counted. `notify`: Lua that notifies the waiters.
 */
export function scripts(type: string, owner: string, queue: string | undefined, notify: string): InspectionScripts {
  const read = `
local holder = ${owner}
local remaining = holder and redis.call('PTTL', KEYS[1]) or 0
local waiting = -1
${queue === undefined ? LISTENERS : `waiting = redis.call('${queue}', KEYS[2])`}
local fence = KEYS[${queue === undefined ? 2 : 3}]
local token = holder and fence and redis.call('GET', fence) or ''
local state = { holder or '', remaining, token, waiting }`;
  const unlock = `
local holder = ${owner}
if not holder or ${acquisitionOf('holder')} ~= ${acquisitionOf('ARGV[1]')} then return 0 end
local remaining = redis.call('PTTL', KEYS[1])
${deleteBy('ARGV[3]')}
${LEAVE_MARK}
${notify}
return 1`;
  const found = (reply: unknown): boolean => Array.isArray(reply) && reply[0] !== '';
  return {
    inspect: new LockScript(`inspect (${type})`, `${read}\nreturn state`, found),
    forceUnlock: new LockScript(`unlock by force (${type})`, unlock),
  };
}
